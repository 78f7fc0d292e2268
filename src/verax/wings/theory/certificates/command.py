"""`verax certify`: what a rule promises, decided by a search for counterexamples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from verax.cli.app import app
from verax.cli.output import NUMBERED, Json, make_table, show

if TYPE_CHECKING:
    from verax.cli.schemas.building import Kinds, Schema
    from verax.wings.theory.certificates.certify import Certificate


@app.command(
    epilog="Examples: `verax certify sa_rps`, `verax certify 'penalized(brier)' rps --n-classes 4 --json`"
)
def certify(
    rules: Annotated[
        list[str], typer.Argument(metavar="RULE", help="Rules by name, such as brier or 'penalized(rps)'.")
    ],
    n_classes: Annotated[
        int, typer.Option("--n-classes", "-k", metavar="N", help="Number of classes, 2 to 8.")
    ] = 3,
    raters: Annotated[
        int | None,
        typer.Option(metavar="N", help="Score the shares of this number of raters, drawn from the truth."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for counterexamples to a rule's promised properties.

    Properties are proper, strictly proper, local, superior and so on.
    """
    from verax.scores.registry import as_rules
    from verax.wings.theory.certificates.certify import certify as search

    certificates = [search(rule, n_classes=n_classes, raters=raters) for rule in as_rules(rules)]
    show(
        {"certificates": [c.to_dict(stored=False) for c in certificates]},
        [_table(c) for c in certificates],
        as_json=as_json,
    )


def _table(certificate: Certificate) -> str:
    header, *rows = certificate._tables()[0].cells()
    resolution = [] if certificate.resolution is None else [str(certificate.resolution)]
    # Counterexamples are sentences, so they follow the table.
    counterexamples = [f"{name}: {', '.join(words)}" for name, _, *words in rows if any(words)]
    return make_table(
        certificate._heading(),
        header[:2],
        [row[:2] for row in rows],
        caption="\n".join(
            ["yes: no counterexample was found", *counterexamples, *resolution, *certificate.notes, NUMBERED]
        ),
    )


def output() -> Kinds:
    """The fields of the output with --json."""
    from verax.cli.schemas.building import listed, of_type
    from verax.wings.theory.certificates.certify import Certificate

    return {"certificates": listed(of_type(Certificate))}


def definitions() -> dict[str, Schema]:
    """Schemas of parts of results that fields do not tell."""
    from verax.cli.schemas.building import COUNT, TEXT, TEXTS, listed, or_none, record

    counterexample = record(
        forecasts=listed(TEXTS), truth=or_none(TEXTS), outcomes=listed(COUNT), losses=TEXTS, text=TEXT
    )
    return {"counterexample": counterexample}
