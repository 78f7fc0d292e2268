"""How `--help` arranges the options of a command: in panels, with a word for the value of each."""

from __future__ import annotations

from typing import Any

# Options by the names of their parameters, in the order of the panels.
_PANELS = {
    "Columns": (
        "target",
        "outcome",
        "raters",
        "raters_are",
        "rater_column",
        "label_column",
        "probs",
        "time",
        "row_id",
        "weights",
        "weights_are",
        "groups",
        "by",
    ),
    "Graded answers": (
        *("grade", "grade_range", "answer", "gold", "confidence_column", "model_column", "task", "epoch"),
        *("missing", "times", "closes", "ungraded"),
    ),
    "Classes": ("classes", "ordered", "positive"),
    "Input": (
        *(
            "logits",
            "normalize",
            "percent",
            "outputs",
            "skip_invalid",
            "shared_ids",
            "delimiter",
            "decimal",
            "apply_to",
        ),
        "stdin_format",
        *("load", "frequencies", "run", "outcomes", "late", "calibrate"),
    ),
    "Top lists": (
        *(
            "shape",
            "position",
            "after",
            "last_match",
            "samples",
            "per_length",
            "merge_variants",
            "omit_missing",
            "omit_others",
        ),
        *("length", "invalid_penalty"),
    ),
    "Scores": (
        *("rule", "doubt_by", "metric", "n", "against", "direction", "removed", "area", "ties", "method"),
        *(
            "reference",
            "margin",
            "difference",
            "width",
            "power",
            "models",
            "rows_per_group",
            "time_ordered",
            "folds",
            "repeats",
            "datasets",
            "score_column",
            "better",
            "rope",
            "tolerance",
            "alpha",
            "unit",
            "false_alarms",
            "level",
            "threshold",
            "score",
            "miss",
            "defer",
        ),
        *("least", "bootstrap", "confidence", "seed"),
    ),
    "Output": ("state", "require", "require_interval", "html", "save", "plot", "out", "as_json"),
}
_PLACE = {name: (panel, i) for panel, names in _PANELS.items() for i, name in enumerate(names)}
_ORDER = list(_PANELS)
_VALUES = {
    **dict.fromkeys(("target", "weights", "row_id", "groups", "by", "outcome"), "COLUMN"),
    **dict.fromkeys(("rater_column", "label_column", "model_column", "confidence_column"), "COLUMN"),
    **dict.fromkeys(("grade", "answer", "gold", "task", "epoch"), "COLUMN"),
    **dict.fromkeys(("missing", "ungraded"), "HOW"),
    **dict.fromkeys(("html", "save", "plot", "out", "load", "apply_to", "outcomes", "calibrate"), "FILE"),
    **dict.fromkeys(("least", "bootstrap", "seed", "n", "length", "folds", "position"), "N"),
    "after": "TEXT",
    "samples": "HOW",
    "probs": "COLUMNS",
    "raters": "COLUMNS",
    "classes": "A,B,C",
    "positive": "CLASS",
    "rule": "RULE",
    "metric": "METRIC",
    "confidence": "LEVEL",
    "delimiter": "CHAR",
    "stdin_format": "NAME",
    "decimal": "CHAR",
    "doubt_by": "NAME",
    "against": "COLUMN",
    "removed": "PERCENT,...",
    "reference": "NAME",
    "method": "NAME",
    "merge_variants": "HOW",
    "shape": "NAME",
    "frequencies": "P,...",
    "weights_are": "KIND",
    "raters_are": "KIND",
    "area": "KIND",
    "ties": "HOW",
    "invalid_penalty": "LOSS",
    "run": "NAME",
    "threshold": "T",
    "level": "SHARE",
    "score": "NAME",
    "miss": "COST",
    "defer": "COST",
    **dict.fromkeys(("margin", "difference", "width"), "LOSS"),
    "power": "SHARE",
    "models": "A,B",
    "rows_per_group": "N",
}


def arrange(command: Any) -> None:
    """Put the options of a command into panels; flags have no value, others a word for it."""
    if hasattr(command, "arranged"):
        return
    command.arranged = True
    help_option = command.get_help_option

    def get_help_option(context: Any) -> Any:
        option = help_option(context)
        option.metavar, option.rich_help_panel = "", None if hasattr(command, "commands") else "Output"
        return option

    command.get_help_option = get_help_option
    for parameter in command.params:
        if parameter.param_type_name != "option":
            parameter.display_type_rich = lambda **_: None
            continue
        panel, _ = _PLACE.get(parameter.name, (None, 0))
        parameter.rich_help_panel = panel
        if parameter.is_flag:
            parameter.metavar = ""
        elif parameter.metavar is None:
            parameter.metavar = _VALUES.get(parameter.name)
    command.params.sort(key=_place)


def _place(parameter: Any) -> tuple[int, int]:
    panel, i = _PLACE.get(parameter.name, (None, 0))
    return (-1, 0) if panel is None else (_ORDER.index(panel), i)
