"""`capedit score`."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from capedit.cli.console import out, print_json
from capedit.cli.datasets import FieldOption, FormatOption, StrictOption, account, open_for
from capedit.data import Dataset, Instance
from capedit.data.scoring import Counting, ScoredPairs, score_instances
from capedit.errors import CapeditError, MissingExtraError
from capedit.metrics import DocumentFrequencies, Evaluation, JavaSpice, SpiceScorer


def score(
    file: Annotated[Path, typer.Argument(help="Instances with targets, and predictions if any.", show_default=False)],
    against: Annotated[Path | None, typer.Option(help="A second system on the same instances.")] = None,
    spice: Annotated[bool, typer.Option("--spice/--no-spice", help="Whether to compute SPICE (capedit).")] = True,
    spice_java: Annotated[Path | None, typer.Option(help="Output JSON of the Java SPICE, to use instead.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Score what this model (a folder, or `default`) makes of FILE; needs --features.")
    ] = None,
    features: Annotated[Path | None, typer.Option(help="With --model: feature store of the images.")] = None,
    df: Annotated[Path | None, typer.Option(help="Saved document frequencies, instead of the targets' own.")] = None,
    save_df: Annotated[Path | None, typer.Option(help="Save the targets' document frequencies here.")] = None,
    counting: Annotated[Counting, typer.Option(help="How steps are counted where the file does not say.")] = "explicit",
    drop_duplicates: Annotated[bool, typer.Option(help="Score equal instances once.")] = False,
    intervals: Annotated[bool, typer.Option(help="95 % confidence intervals, by bootstrap.")] = False,
    per_instance: Annotated[Path | None, typer.Option(help="Write the scores of each instance to this CSV.")] = None,
    plot: Annotated[Path | None, typer.Option(help="With --against: a picture of where the two differ.")] = None,
    format: FormatOption = None,
    field: FieldOption = None,
    strict: StrictOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print a Markdown table.")] = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.")] = False,
) -> None:
    """Score captions: BLEU, ROUGE-L, CIDEr-D, SPICE (capedit), broken sentences, and what the edits cost.

    The field `prediction` is scored where there is one, else the reference captions (the Ref-Caps row).
    Example: `capedit score ours.json --against theirs.json --plot differ.png`
    """
    if spice_java and (against or drop_duplicates):
        raise CapeditError("--spice-java goes by the order of FILE: leave out --against and --drop-duplicates")
    frequencies = DocumentFrequencies.load(df) if df else None
    datasets = [open_for(path, format, field, strict) for path in (file, against) if path is not None]
    scored: list[Iterable[Instance]] = [*datasets]
    if model is not None:
        scored[0] = _predicted(datasets[0], model, features)
    evaluations = [
        score_instances(
            instances,
            counting=counting,
            drop_duplicates=drop_duplicates,
            spice=_spice_scorer(spice, spice_java),
            frequencies=frequencies,
        )
        for instances in scored
    ]
    ours, theirs = evaluations[0], evaluations[1] if against else None
    if save_df:
        DocumentFrequencies.from_pairs(ScoredPairs(scored[0]), source=file.name).save(save_df)
    if per_instance:
        _write_per_instance(scored[0], ours, per_instance)
    if plot:
        if theirs is None or against is None:
            raise CapeditError("--plot shows where two systems differ: name the other with --against")
        from capedit.experiments.comparison import plot_comparison

        plot_comparison(ours, theirs, (file.name, against.name), plot)

    if json:
        print_json(_as_json(ours, theirs, intervals))
    elif markdown or latex:
        rows = {dataset.path.name: _labelled(found) for dataset, found in zip(datasets, evaluations, strict=True)}
        typer.echo((as_markdown if markdown else as_latex)(rows, str(ours.signature)))
    else:
        out.print(_table(ours, theirs, intervals))
        out.print(str(ours.signature), style="dim")
    account(datasets[0])


def _predicted(dataset: Dataset, model: str, features: Path | None) -> list[Instance]:
    """What a model makes of the instances whose image is at hand."""
    if features is None:
        raise CapeditError("--model needs the images: name their feature store with --features")
    try:
        from capedit.experiments.predicting import load_model, predict
        from capedit.vision import FeatureStore
    except ImportError as error:
        raise MissingExtraError("capedit score --model", "train", str(error)) from error
    store = FeatureStore(features)
    return predict(dataset, load_model(model, store.header.encoder_hash), store)


def _spice_scorer(wanted: bool, java_output: Path | None) -> SpiceScorer | None:
    if java_output is not None:
        return JavaSpice(java_output)
    if not wanted:
        return None
    try:
        from capedit.metrics.spice import Spice

        return Spice()
    except MissingExtraError as error:
        raise CapeditError(f"{error}; or leave it out with --no-spice") from error


def _labelled(evaluation: Evaluation) -> dict[str, float]:
    """The scores under the names that people read: our SPICE is never taken for the Java original."""
    return {_label(name, evaluation): value for name, value in evaluation.scores.items()}


def _label(name: str, evaluation: Evaluation) -> str:
    return evaluation.signature.spice if name == "SPICE" else name


def _as_json(ours: Evaluation, theirs: Evaluation | None, intervals: bool) -> dict[str, Any]:
    result = ours.to_json()
    if intervals:
        result["intervals"] = {name: [found.low, found.high] for name, found in ours.intervals().items()}
    if theirs is not None:
        result["against"] = theirs.to_json()
        result["difference"] = {
            name: {"value": found.difference, "low": found.low, "high": found.high, "p": found.p_value}
            for name, found in ours.compare(theirs).items()
        }
    return result


def _table(ours: Evaluation, theirs: Evaluation | None, intervals: bool) -> Table:
    table = Table("score", "value")
    bounds = ours.intervals() if intervals else {}
    compared = ours.compare(theirs) if theirs else {}
    if intervals:
        table.add_column("95 %")
    if theirs:
        table.add_column("other")
        table.add_column("difference")
        table.add_column("p")
    for name, value in ours.scores.items():
        row = [_label(name, ours), f"{value:.2f}"]
        if intervals:
            row.append(f"{bounds[name].low:.2f} .. {bounds[name].high:.2f}")
        if theirs and name in compared:
            found = compared[name]
            row += [f"{theirs.scores[name]:.2f}", f"{found.difference:+.2f}", f"{found.p_value:.3f}"]
        table.add_row(*row)
    return table


def as_markdown(rows: Mapping[str, Mapping[str, float]], signature: str) -> str:
    """One line a system."""
    names = _columns(rows)
    lines = [
        "| | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
        *(f"| {system} | " + " | ".join(_cells(scores, names)) + " |" for system, scores in rows.items()),
        "",
        f"`{signature}`",
    ]
    return "\n".join(lines)


def as_latex(rows: Mapping[str, Mapping[str, float]], signature: str) -> str:
    """The same for a paper (needs booktabs)."""
    names = _columns(rows)
    body = [f"{_latex_text(system)} & " + " & ".join(_cells(scores, names)) + r" \\" for system, scores in rows.items()]
    lines = [
        rf"% {signature}",
        rf"\begin{{tabular}}{{l{'r' * len(names)}}}",
        r"\toprule",
        " & " + " & ".join(_latex_text(name) for name in names) + r" \\",
        r"\midrule",
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines)


def _columns(rows: Mapping[str, Mapping[str, float]]) -> list[str]:
    return list(dict.fromkeys(name for scores in rows.values() for name in scores))


def _cells(scores: Mapping[str, float], names: list[str]) -> list[str]:
    return [f"{scores[name]:.2f}" if name in scores else "--" for name in names]


def _latex_text(text: str) -> str:
    return "".join(f"\\{character}" if character in "&%$#_{}" else character for character in text)


def _write_per_instance(instances: Iterable[Instance], evaluation: Evaluation, path: Path) -> None:
    names = list(evaluation.per_instance)
    columns = zip(*(evaluation.per_instance[name] for name in names), strict=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names])
        for instance, values in zip(instances, columns, strict=True):
            writer.writerow([instance.id, *(f"{value:.6f}" for value in values)])
