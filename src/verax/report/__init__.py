"""The report: one HTML file from predictions to a decision. `Report.of(y, p).save("report.html")`."""

from verax.report.document import Report

__all__ = ["Report"]
