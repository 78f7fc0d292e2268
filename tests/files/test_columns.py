"""Files of predictions: which column is what."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as papq
import pytest

import verax as vx
from cases import card_of_file
from predictionfiles import CSV, refuses
from verax import files


@pytest.mark.parametrize(
    ("header", "options", "classes"),
    [
        ("label,p_a,p_b", {}, ("a", "b")),
        ("Label,prob_a,prob_b", {}, ("a", "b")),
        ("y_true,y_prob_a,y_prob_b", {}, ("a", "b")),
        ("kind,a,b", {"target": "kind"}, ("a", "b")),
        ("label,model.a,model.b", {"probs": "model.*"}, ("a", "b")),
        ("label,model.a,model.b", {"probs": ["model.a", "model.b"]}, ("a", "b")),
        ("label,m1a,m1b", {"probs": "m1?"}, ("a", "b")),
        ("label,p_b,p_a", {"classes": ["a", "b"]}, ("a", "b")),
        ("label,p_0,p_1", {"classes": ["a", "b"]}, ("a", "b")),
        ("label,p1,p2", {"classes": ["a", "b"]}, ("a", "b")),
        ("label,left,right", {"probs": ["left", "right"], "classes": ["a", "b"]}, ("a", "b")),
        ("label,logit_a,logit_b", {"logits": True}, ("a", "b")),
    ],
)
def test_columns_are_found(header, options, classes, write):
    target = header.split(",")[0]
    read = files.read(write(CSV.replace("label,p_a,p_b", header)), **options)
    assert (read.classes, read.y.tolist(), read.roles.target) == (classes, [0, 1], target)
    flipped = "p_b,p_a" in header
    assert read.p.tolist() == ([[0.8, 0.2], [0.5, 0.5]] if flipped else [[0.2, 0.8], [0.5, 0.5]])


@pytest.mark.parametrize(
    ("content", "options", "classes", "y"),
    [
        ("label,p_0,p_1\n1,0.2,0.8\n0,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_1,p_2\n1,0.2,0.8\n2,0.5,0.5\n", {}, (1, 2), [1, 2]),
        ("label,p_1,p_2\n1,0.2,0.8\n2,0.5,0.5\n", {"classes": ["low", "high"]}, ("low", "high"), [0, 1]),
        ("label,p_low,p_high\n1,0.2,0.8\n0,0.5,0.5\n", {}, ("low", "high"), [1, 0]),
        ("label,p_0,p_1\n1.0,0.2,0.8\n0.0,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_true,p_false\ntrue,0.2,0.8\nfalse,0.5,0.5\n", {}, ("true", "false"), [0, 1]),
        ("label,p_0,p_1\ntrue,0.2,0.8\nfalse,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ("label,0,1\n1,0.2,0.8\n0,0.5,0.5\n", {}, (0, 1), [1, 0]),
        ('label,p_0,p_1\n"1",0.2,0.8\n"0",0.5,0.5\n', {}, (0, 1), [1, 0]),
    ],
)
def test_labels_are_found(content, options, classes, y, write):
    read = files.read(write(content), **options)
    assert (read.classes, read.y.tolist()) == (classes, y)
    # Whatever the form, the library reads it as it was meant.
    positions = [classes.index(v) if isinstance(classes[0], int) else v for v in y]
    assert vx.brier(read.y, read.p, classes=read.classes) == vx.brier(positions, read.p)


@pytest.mark.parametrize(
    ("content", "options", "classes", "y"),
    [
        ("label,prob\n1,0.75\n0,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_1\n1,0.75\n0,0.5\n", {}, (0, 1), [1, 0]),
        ("label,p_yes\nyes,0.75\nno,0.5\n", {}, ("no", "yes"), [1, 0]),
        ("label,prob\nyes,0.75\nno,0.5\n", {"positive": "yes"}, ("no", "yes"), [1, 0]),
        ("label,prob\nyes,0.75\nno,0.5\n", {"classes": ["no", "yes"]}, ("no", "yes"), [1, 0]),
        ("label,prob\ntrue,0.75\nfalse,0.5\n", {}, (0, 1), [1, 0]),
    ],
)
def test_one_column_of_two_classes(content, options, classes, y, write):
    read = files.read(write(content), **options)
    assert (read.classes, read.y.tolist()) == (classes, y)
    assert read.p.tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_one_logit_of_two_classes(write):
    read = files.read(write("label,logit\n1,2.5\n0,-1\n"), logits=True)
    assert read.p.tolist() == [[0, 2.5], [0, -1]]
    assert vx.log_score(read.y, read.p, logits=True) == pytest.approx(
        vx.log_score([1, 0], [2.5, -1], logits=True)
    )


ORDERED = "label,p_{},p_{},p_{}\na,0.2,0.3,0.5\n"


def test_order_is_given_numbered_or_stored_never_guessed(write, tmp_path):
    path = write(ORDERED.format("a", "b", "c"))
    refuses(path, "classes order classes", ordered=True)
    assert files.read(path, ordered=True, classes=["c", "a", "b"]).p.tolist() == [[0.5, 0.2, 0.3]]
    numbered = write("label,p_1,p_2,p_10\n2,0.2,0.3,0.5\n", "n.csv")
    assert files.read(numbered, ordered=True).classes == (1, 2, 10)
    refuses(write("label,p_1,p_10,p_2\n2,0.2,0.3,0.5\n", "m.csv"), "classes order classes", ordered=True)
    for has_order in (True, False):
        codes = pa.array([1, 0], pa.int8())
        label = pa.DictionaryArray.from_arrays(codes, pa.array(["c", "a", "b"]), ordered=has_order)
        columns = {"label": label, "p_a": [0.2, 0.1], "p_b": [0.3, 0.1], "p_c": [0.5, 0.8]}
        papq.write_table(pa.table(columns), tmp_path / "d.parquet")
        if has_order:
            read = files.read(tmp_path / "d.parquet", ordered=True)
            assert (read.classes, read.y.tolist()) == (("c", "a", "b"), [1, 0])
            assert read.p.tolist() == [[0.5, 0.2, 0.3], [0.8, 0.1, 0.1]]
        else:
            refuses(tmp_path / "d.parquet", "classes order classes", ordered=True)


@pytest.mark.parametrize(
    ("content", "options", "facts"),
    [
        (CSV, {"target": "lable"}, "target missing"),
        (CSV, {"weights": "w"}, "weights missing"),
        (CSV, {"probs": "q_*"}, "probs missing"),
        (CSV, {"probs": "p_aa"}, "probs missing"),
        (CSV.replace("label", "thing"), {}, "target missing target"),
        (CSV.replace("p_a", "y_true"), {}, "target value target"),
        (CSV.replace("p_", "q").replace("0.8", "0.3"), {"target": "label"}, "probs missing probs"),
        (CSV.replace("p_", "logit_"), {}, "logits missing logits"),
        ("label,p_a,p_b,prob_a,prob_b\na,.5,.5,.5,.5\n", {}, "probs value probs"),
        (CSV, {"classes": ["a"]}, "classes length"),
        (CSV, {"classes": ["a", "B"]}, "classes label probs"),
        (CSV, {"classes": ["a", "a"]}, "classes value"),
        (CSV + "B,0.5,0.5\n", {}, "target label row=2"),
        ("label,p_0,p_1\nno,0.5,0.5\n", {}, "classes label classes"),
        ("label,prob\nyes,0.5\nno,0.4\n", {}, "positive missing positive"),
        ("label,prob\n1,50\n0,40\n", {}, "probs value row=0 percent logits"),
        ("label,p_0,p_1\n0.5,0.5,0.5\n", {}, "classes label classes"),
        ("label,p_1,p_2\n1,0.5,0.5\n3,0.5,0.5\n", {"classes": ["x", "y"]}, "target label row=1"),
        (CSV, {"target": 5}, "target type"),
        (CSV, {"probs": 5}, "probs type"),
        (CSV, {"classes": 5}, "classes type"),
        (CSV, {"delimiter": "é"}, "delimiter value"),
        (CSV, {"decimal": ""}, "decimal value"),
        ("label,p_a,p_b\na,0.2,0.8\n", {"probs": "p_a", "classes": ["a", "a"]}, "classes length"),
    ],
)
def test_what_cannot_be_found(content, options, facts, write):
    refuses(write(content), facts, **options)


@pytest.mark.parametrize(
    ("content", "probs", "classes"),
    [
        # All columns of numbers; the number at the end of the name is the class.
        ("gt,dr0,dr1,dr2\n0,0.5,0.3,0.2\n2,0.1,0.2,0.7\n", ["dr0", "dr1", "dr2"], (0, 1, 2)),
        ("gt,dr1,dr2,dr3\n1,0.5,0.3,0.2\n3,0.1,0.2,0.7\n", ["dr1", "dr2", "dr3"], (1, 2, 3)),
        # What is no probability is left out, and so are flags.
        ("true,age,qa,qb\na,40,0.5,0.5\nb,50,0.1,0.9\n", ["qa", "qb"], ("a", "b")),
        ("truth,m,f,u,v\n0,1,0,.5,.5\n1,0,1,.1,.9\n0,1,0,.2,.8\n", ["u", "v"], ("u", "v")),
        # Of one name, beside another column that may hold a probability.
        ("actual,s,A 1,A 2\n1,.5,.5,.5\n2,.3,.1,.9\n2,.5,.6,.4\n", ["A 1", "A 2"], (1, 2)),
        ("answer,Home win,Away win\nHome,.5,.5\nAway,.4,.6\n", ["Home win", "Away win"], ("Home", "Away")),
        ("Correct Answer,cA,cB\nA,.5,.5\nB,.4,.6\n", ["cA", "cB"], ("A", "B")),
        # A broken row is for other checks to complain about.
        ("correct,u,v\n0,.5,.5\n" + "1,.4,.6\n" * 10 + "1,,.6\n", ["u", "v"], ("u", "v")),
    ],
)
def test_columns_are_recognised_by_the_sums_of_their_rows(content, probs, classes, write):
    source = files.open(write(content))
    assert (list(source.roles.probs), source.classes) == (probs, classes)
    assert any("recognised by the sums" in line for line in source.taken)


def test_a_class_without_any_probability_is_not_lost(write):
    numbered = files.open(write("obs,0,1,2\n0,0.5,0.5,0\n1,0.3,0.7,0\n"))
    assert numbered.classes == (0, 1, 2)
    named = files.open(write("obs,Home,Draw,Away\nHome,0.5,0,0.5\nAway,0.3,0,0.7\n"))
    assert (named.classes, named.roles.not_taken) == (("Home", "Away"), ("Draw",))


def _hpc(n=60, rare=0.05):
    """Rows of four classes, of which the last never happens, as caret writes them, and their Brier score."""
    rng = np.random.default_rng(5)
    p = np.round(rng.dirichlet([2, 1, 1, rare], n), 4)
    p[:, 0] = np.round(1 - p[:, 1:].sum(axis=1), 4)
    y = [rng.choice(3, p=row[:3] / row[:3].sum()) for row in p]
    names = ["VF", "F", "M", "L"]
    lines = [f"{names[k]},VF,{','.join(map(str, p[i]))},{i % 5 + 1}" for i, k in enumerate(y)]
    return "\n".join(["obs,pred,VF,F,M,L,fold", *lines]) + "\n", ((p - np.eye(4)[y]) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("rare", [0.02, 0.5])
@pytest.mark.parametrize("options", [{}, {"normalize": True}, {"classes": ["VF", "F", "M", "L"]}])
def test_a_class_that_never_happened_keeps_its_column(rare, options, write):
    # Where it is rare, the other columns nearly sum to 1 in most rows.
    content, brier = _hpc(rare=rare)
    path = write(content)
    read = files.read(path, **options)
    assert read.classes == ("VF", "F", "M", "L")
    assert vx.brier(read.y, read.p) == pytest.approx(brier, abs=1e-9)
    handle = vx.scan(pacsv.read_csv(path), **options)
    assert vx.evaluate(handle, rules=["brier"])["brier"] == pytest.approx(brier, abs=1e-9)


def test_to_rescale_is_not_advised_where_a_class_is_missing(write):
    content, _ = _hpc()
    path = write(content)
    assert "what they lack is in L." in str(refuses(path, "probs value probs", classes=["VF", "F", "M"]))
    # Columns that are called alike are completed by one that is called otherwise only on request.
    prefixed = write(content.replace("VF,F,M,L", "p_VF,p_F,p_M,rest"), "b.csv")
    refuses(prefixed, "probs value probs")
    refuses(prefixed, "probs value probs", normalize=True)
    named = files.read(prefixed, probs=["p_VF", "p_F", "p_M", "rest"], classes=["VF", "F", "M", "L"])
    assert named.p.shape[1] == 4
    # Columns that the caller names, and a column that is zero in the first rows.
    late = "label,VF,F,L\n" + "VF,0.5,0.5,0\nF,0.5,0.5,0\n" * 600 + "VF,0.5,0.25,0.25\n"
    for given, options in ((content, {"probs": ["VF", "F", "M"]}), (late, {})):
        with pytest.raises(vx.InputError, match=r"Is a class missing \(L\)\? Pass probs=") as found:
            card_of_file(files.open(write(given, "c.csv"), **options))
        assert "normalize" not in str(found.value)
    with pytest.raises(vx.InputError, match="to rescale, if no class is missing"):
        vx.brier([0, 1], [[0.5, 0.4], [0.5, 0.5]])


def test_numbered_columns_are_completed_by_the_last_class(write):
    content = "obs,0,1,2+,age\n0,0.5,0.25,0.25,30\n1,0.375,0.625,0,40\n0,0.5,0.5,0,50\n"
    assert files.open(write(content)).classes == ("0", "1", "2+")


def test_of_two_columns_that_complete_the_sums_none_is_taken(write):
    content = "obs,a,b,c,d\na,0.5,0.25,0.25,0.25\nb,0.5,0.5,0,0\n"
    assert "(a, b, c) or (a, b, d)" in str(refuses(write(content), "probs value probs"))


def test_two_classes_that_never_happened(write):
    content = "obs,a,b,c,d,flag\na,0.5,0.25,0.25,0,1\nb,0.5,0.25,0,0.25,0\nb,0.25,0.75,0,0,1\n"
    assert files.open(write(content)).classes == ("a", "b", "c", "d")


def test_logits_of_a_class_that_never_happened_are_asked_for(write):
    # No sum tells whether the third column is a class.
    path = write("obs,a,b,c\na,1.5,0.5,-1\nb,0.5,1.5,-1.5\n")
    refuses(path, "probs value probs", logits=True)
    assert files.read(path, logits=True, classes=["a", "b", "c"]).p.shape == (2, 3)


def test_classes_choose_columns_by_name(write):
    content = "obs,a,b,c,d,e\na,0.5,0.5,0.25,0.25,0.5\nb,0.25,0.75,0.5,0.25,0.25\n"
    read = files.read(write(content), classes=["b", "a"])
    assert (read.classes, read.p.tolist()) == (("b", "a"), [[0.5, 0.5], [0.75, 0.25]])


def test_sums_that_fit_several_sets_decide_nothing(write):
    two = "gt,a1,a2,b1,b2\n1,0.5,0.5,0.2,0.8\n2,0.1,0.9,0.3,0.7\n"
    error = refuses(write(two), "probs value probs")
    assert "(a1, a2) or (b1, b2)" in str(error)
    refuses(write("gt,a,b,c\n0,0.5,0.5,0.5\n1,0.5,0.5,0.5\n"), "probs value probs")
    # The order of classes is never guessed from the columns.
    refuses(write("gt,lo,hi,mid\nlo,0.5,0.3,0.2\nhi,0.1,0.2,0.7\n"), "classes order classes", ordered=True)


def test_percentages_are_named(write):
    path = write("gt,qa,qb\na,50,50\nb,30,70\n")
    assert "hold percentages; their rows sum to 100" in str(refuses(path, "probs value normalize"))
    assert files.read(path, normalize=True).classes == ("a", "b")
    with pytest.raises(vx.InputError, match="percentages: divide them by 100"):
        vx.brier([0, 1], [[50, 50], [30, 70]])


# Valid: rows 0, 2, 9 and 10.
BROKEN = """label,p_a,p_b,p_c,site,w,id
a,0.5,0.3,0.2,x,1,i0
b,0.5,,0.5,x,1,i1
c,0.1,0.9,0,y,1,i2
d,0.2,0.3,0.5,y,1,i3
,0.2,0.3,0.5,y,1,i4
a,0.2,0.3,n/a,y,1,i5
a,0.2,0.3,0.9,y,1,i6
a,0.2,0.3,0.5,,1,i7
a,0.2,0.3,0.5,x,-1,i8
b,0.2,0.6,0.2,x,1,i9
c,0.2,0.6,0.2,y,2,i10
"""
REASONS = {
    "missing groups": 1,
    "probabilities that are missing or not finite": 2,
    "missing outcomes": 1,
    "outcomes not among the classes": 1,
    "probabilities that do not sum to 1": 1,
    "weights that are missing, negative or not finite": 1,
}


def as_parquet(path):
    """The broken rows with missing values where a text file has other texts."""
    table = pacsv.read_csv(
        path, convert_options=pacsv.ConvertOptions(null_values=["", "n/a"], strings_can_be_null=True)
    )
    papq.write_table(table, path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


@pytest.mark.parametrize("rows", [None, 1, 3])
@pytest.mark.parametrize("convert", [lambda path: path, as_parquet])
def test_invalid_rows_are_left_out_on_request(convert, rows, write):
    path = convert(write(BROKEN))
    source = files.open(path, groups="site", weights="w", id="id", invalid="skip")
    parts = list(source.batches(rows))
    assert [n for part in parts for n in part.rows.tolist()] == [0, 2, 9, 10]
    assert [text for part in parts for text in part.ids.tolist()] == ["i0", "i2", "i9", "i10"]
    assert (source.skipped.n_given, source.skipped.rows) == (11, (1, 3, 4, 5, 6, 7, 8))
    assert source.skipped.reasons == REASONS
    card = card_of_file(source, rows=rows)
    assert (card.n_rows, card.weight, card.skipped) == (4, 5, source.skipped)
    assert (card.n_zero_probability, card.zero_probability_rows) == (1, (2,))
    p = [[0.5, 0.3, 0.2], [0.1, 0.9, 0], [0.2, 0.6, 0.2], [0.2, 0.6, 0.2]]
    assert card["brier"] == pytest.approx(vx.brier([0, 2, 1, 2], p, weights=[1, 1, 1, 2]))


def test_rows_of_other_forms_are_left_out(tmp_path, write):
    single = files.read(write("y,p\n1,0.5\n0,2\n1,x\n2,0.5\n0,0.25\n"), invalid="skip")
    assert (single.rows.tolist(), single.p.tolist()) == ([0, 4], [[0.5, 0.5], [0.75, 0.25]])
    lists = pa.table({"label": [0, 1, 0], "probs": [[0.5, 0.5], [0.5], [0.1, None]]})
    papq.write_table(lists, tmp_path / "a.parquet")
    assert files.read(tmp_path / "a.parquet", invalid="skip").rows.tolist() == [0]
    p = np.array([[0.5, 0.5], [0.1, np.nan], [0.3, 0.7], [0.2, 0.2], [0.4, 0.6]])
    np.savez(tmp_path / "a.npz", probs=p, labels=[0, 1, 2, 1, 1])
    assert files.read(tmp_path / "a.npz", invalid="skip").rows.tolist() == [0, 4]
    np.savez(tmp_path / "b.npz", probs=p[:, 0] * 3, labels=[0, 1, 1, 1.5, 1])
    assert files.read(tmp_path / "b.npz", invalid="skip").rows.tolist() == [1, 2]
    with pytest.raises(vx.InputError, match="no valid row; 2 of 2 rows were left out"):
        files.read(write("y,p\n5,0.5\n0,2\n"), invalid="skip")


def test_messages_count_all_offenders(write):
    for cells, words in (
        ("a,,0.5\nb,,0.5\n", "row 2 has none (2 rows so far)"),
        ("a,x,0.5\nb,0.5,0.5\na,y,0.5\n", "row 2 holds 'x' (2 rows so far)"),
        ("z,0.5,0.5\na,0.5,0.5\nw,0.5,0.5\n", "row 2 holds 'z' (2 rows so far)"),
    ):
        with pytest.raises(vx.InputError) as found:
            files.read(write(CSV + cells))
        assert words in str(found.value)
        assert found.value.count == 2


def test_lists_are_recognised_by_their_sums(tmp_path):
    columns = {"gt": [0, 1], "scores": [[0.5, 0.5], [0.1, 0.9]], "box": [[3.0, 4.0], [5.0, 6.0]]}
    papq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert files.open(tmp_path / "a.parquet").roles.probs == ("scores",)


def test_one_column_has_the_tolerance_that_rows_have(write):
    assert files.read(write("y,p\n1,1.0000009\n0,0.5\n")).p.tolist() == [[0, 1.0000009], [0.5, 0.5]]
    refuses(write("y,p\n1,0.5\n1,1.00001\n"), "probs value row=1 percent logits")


def test_names_of_classes_have_no_separators_at_their_ends(write):
    content = "result,Model Home,Model Draw,Book Home,Book Draw\nHome,.5,.5,.4,.6\n"
    for pattern in ("Model*", "Model *", "Book*"):
        assert files.read(write(content), target="result", probs=pattern).classes == ("Home", "Draw")


@pytest.mark.parametrize(
    ("content", "facts", "words", "silent"),
    [
        (CSV + "a,0.5\n", "path file", "Complete the line", "delimiter"),
        (CSV.replace(",", ";").replace(".", ","), "delimiter file delimiter", "';'", "header 1"),
        (
            "a,b,c,d,e,f,g,h,i,kind\n" + "1," * 9 + "x\n",
            "target missing target",
            "..., i, kind (10 col",
            "p_",
        ),
        ("p_a,p_b,kind\n0.5,0.5,a\n", "target missing target", "has kind", ", p_b"),
        ("label,z\na,0.5\nb,0.3\n", "probs missing probs", "has z", "logits"),
        ("label,who\na,x\nb,y\n", "probs missing", "who", "Pass"),
    ],
)
def test_remedies_fit(content, facts, words, silent, write):
    text = str(refuses(write(content), facts))
    assert words in text
    assert silent not in text


def test_objects_are_not_read(write):
    line = '{"label":"a","probs":{"a":0.5,"b":0.5}}\n'
    assert "Objects (probs) are not read" in str(refuses(write(line, "a.jsonl"), "probs missing"))


@pytest.mark.parametrize("name", ["obs", "obs.cat", "category", "Observed"])
def test_other_names_of_outcomes(name, write):
    assert files.read(write(CSV.replace("label", name))).roles.target == name
    assert (
        files.read(
            write(
                CSV.replace("label,p_a,p_b", f"label,p_a,p_b,{name}")
                .replace("8\n", "8,x\n")
                .replace("5\n", "5,x\n")
            )
        ).roles.target
        == "label"
    )
