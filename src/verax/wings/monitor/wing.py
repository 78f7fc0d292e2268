"""The wing of monitoring."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="monitor",
    says="Losses and calibration over time, with valid alarms.",
    functions={
        "Monitor": "monitor:Monitor",
        "over_time": "over_time:over_time",
    },
    results={
        "Acknowledgement": "result:Acknowledgement",
        "Alarm": "result:Alarm",
        "MonitorHistory": "result:MonitorHistory",
        "OverTime": "over_time:OverTime",
    },
    commands={
        "monitor": Command(
            "Watch losses and calibration over time, with valid alarms.",
            after="raters",
            output="command:output",
        ),
    },
    definitions="command:definitions",
    saved=("pending", "steps"),
    uses=("lists",),
    tutorial="docs/guide/monitoring.md",
)
