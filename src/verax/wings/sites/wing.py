"""The wing of sites."""

from verax.common.wings import Command, Wing

WING = Wing(
    name="sites",
    says="How sites differ, which one stands out, and what the next one will see.",
    functions={
        "sites": "analysis:sites",
    },
    results={
        "SiteStudy": "result:SiteStudy",
    },
    commands={
        "sites": Command(
            "Show how sites differ, which of them stands out, and what the next one will see.",
            after="raters",
            output="command:output",
            takes={"evaluate": ("sites", ("--sites",))},
        ),
    },
    tutorial="docs/guide/sites.md",
)
