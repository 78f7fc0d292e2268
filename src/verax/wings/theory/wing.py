"""The wing of theory."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="theory",
    says="What rules promise, pictures of rules, and published numbers recomputed.",
    functions={
        "certify": "certificates.certify:certify",
    },
    results={
        "Certificate": "certificates.certify:Certificate",
        "Landscape": "landscape:Landscape",
    },
    commands={
        "certify": Command(
            "Search for counterexamples to a rule's promised properties.",
            place="certificates.command",
            after="toplist",
            output="certificates.command:output",
        ),
        "reproduce": Command(
            "Recompute the published numbers of a paper.",
            place="papers.command",
            after="certify",
            output="papers.command:output",
        ),
    },
    definitions="certificates.command:definitions",
    uses=("retain",),
    tutorial="docs/errata.md",
)
