"""Measure retrieval on a dataset: index it, ask every question, and record the ranks of the golden passages.

Indexing, search and reranking are those of `index` and `search`. What counts as found depends on the golden passages of
a question:

- chunks: these chunks;
- spans: the chunks that contain at least half of the span or lie at least half within it, or else the chunk that
  contains most of it, so a dataset of spans measures any chunker;
- documents: each ranking becomes a ranking of documents, each at the rank of its best chunk;
- lines of files in a library in use: the chunks that contain one of them.

Questions without an answer are counted, but not included in the means.
"""

import hashlib
import json
import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

from local_rag.document_records import Chunk
from local_rag.errors import DatasetError, LibraryError
from local_rag.evaluation.answer_figures import (
    compare_answers,
    measure_answers,
    measure_facts,
    risk_coverage,
    summarize_answers,
)
from local_rag.evaluation.dataset import Dataset, DatasetDocument, GoldenLines, GoldenSpan, Part, Question
from local_rag.evaluation.ranking_metrics import (
    METRICS,
    by_question,
    confidence_interval,
    golden_ranks,
    measure,
    paired_test,
)
from local_rag.evaluation.run_history import new_figure, save_figure
from local_rag.files import FileStamp
from local_rag.indexing.changes import ScannedFile, compare_documents
from local_rag.indexing.document_rows import document_rows
from local_rag.library import Library
from local_rag.models.choice import chosen
from local_rag.progress_records import Progress

POOL = 150  # the largest depth at which recall is reported


def evaluate(
    dataset: Dataset,
    library: Library,
    *,
    part: Part,
    rerank: bool,
    answers: bool = False,
    facts: bool = False,
    progress: Callable[[Progress], None],
) -> dict[str, Any]:
    """Index the dataset into the library if necessary, ask its questions, and return the report for JSON.

    A dataset without documents is asked of the library as it is; nothing is indexed. With `answers` every question is
    also answered; with `facts` what the model would be shown is searched for all that a right answer must include.
    `part` chooses a part of the questions. The report's `per_question` holds the ranks of the golden passages in every
    stage, which is all that a comparison or a plot needs.
    """
    if dataset.documents:
        chunks = index_dataset(dataset, library, progress)
    else:
        dataset, chunks = find_golden_files(dataset, library)
    asked = [question for question in dataset.questions if part in {"all", question.part}]
    questions = [question for question in asked if question.has_golden]
    if not questions:
        raise DatasetError(f"{dataset.folder} contains no answerable question; add some to questions.jsonl.")
    ranker = Ranker(dataset, chunks, rows_of_documents(dataset, library))
    library.retrieval.trace(questions[0].text, top=POOL, rerank=rerank)  # loads the models, which is not timed
    rows, timed = ask_all(library, questions, ranker, rerank=rerank, progress=progress)
    answered = measure_answers(dataset, asked, library, progress) if answers else []
    seconds = {stage: fmean(one[stage] for one in timed) for stage in timed[0]}
    values = stage_values(rows)
    return {
        "dataset": dataset.folder.resolve().name,
        "part": part,
        "questions": len(questions),
        "unanswerable": len(asked) - len(questions),
        "unreviewed": sum(not question.reviewed for question in questions),
        "documents": len({document for document, _ in chunks.values()}),
        "chunks": len(chunks),
        "generated_contexts": library.retrieval.manifest()["generated_contexts"],
        "profile": library.settings.profile,
        "context": library.settings.context,
        "models": chosen(library.settings),
        "stages": {
            stage: {metric: fmean(numbers) for metric, numbers in metrics.items()} for stage, metrics in values.items()
        },
        "intervals": {
            stage: {metric: confidence_interval(numbers) for metric, numbers in metrics.items()}
            for stage, metrics in values.items()
        },
        "seconds_per_question": {**seconds, "total": sum(seconds.values())},
        "per_question": rows,
        **({"answers": summarize_answers(answered, len(asked)), "per_answer": answered} if answers else {}),
        **(dict(zip(("facts", "per_fact"), measure_facts(asked, library, progress), strict=True)) if facts else {}),
    }


def ask_all(
    library: Library,
    questions: Sequence[Question],
    ranker: "Ranker",
    *,
    rerank: bool,
    progress: Callable[[Progress], None],
) -> tuple[list[dict[str, Any]], list[Mapping[str, float]]]:
    """Search for all questions; return the rows of `per_question`, and how many seconds each question took by stage."""
    rows, seconds = list[dict[str, Any]](), list[Mapping[str, float]]()
    for number, question in enumerate(questions):
        progress(Progress("ask", number, len(questions)))
        trace = library.retrieval.trace(question.text, top=POOL, marked=False, rerank=rerank, earlier=question.earlier)
        golden, ranks = ranker.ranks(question, trace.rankings)
        rows.append({"question": question.text, "golden": golden, "ranks": ranks})
        seconds.append(trace.seconds)
    progress(Progress("ask", len(questions), len(questions)))
    return rows, seconds


def stage_values(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Return stage -> metric -> one value per question, from the rows of a report's `per_question`."""
    measured = {stage: [measure(row["ranks"][stage], row["golden"]) for row in rows] for stage in rows[0]["ranks"]}
    return {
        stage: {metric: [values[metric] for values in questions] for metric in METRICS}
        for stage, questions in measured.items()
    }


def compare_reports(report: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Compare two runs over the questions in both: the means, their difference and p for each stage and metric."""
    mine, others = by_question(report["per_question"]), by_question(other["per_question"])
    asked = [question for question in mine if question in others]
    if not asked:
        raise DatasetError("The two runs have no question in common; compare runs over the same dataset.")
    values = stage_values([mine[question] for question in asked])
    other_values = stage_values([others[question] for question in asked])
    stages = {
        stage: {
            metric: {
                "this": fmean(numbers),
                "other": fmean(other_values[stage][metric]),
                "difference": fmean(numbers) - fmean(other_values[stage][metric]),
                "p": paired_test(numbers, other_values[stage][metric]),
            }
            for metric, numbers in metrics.items()
        }
        for stage, metrics in values.items()
        if stage in other_values
    }
    both = "per_answer" in report and "per_answer" in other
    answers = {"answers": compare_answers(report["per_answer"], other["per_answer"])} if both else {}
    return {"questions": len(asked), "stages": stages, **answers}


def index_dataset(
    dataset: Dataset, library: Library, progress: Callable[[Progress], None]
) -> dict[int, tuple[str, Chunk]]:
    """Bring a library up to date with a dataset; return chunk id -> (document id, chunk).

    Only what is missing is computed, and a stopped run keeps everything finished. Raises LibraryError for a library of
    the user's own documents, which the documents of the dataset would replace.
    """
    documents = {document.document.path: document for document in dataset.documents}
    with library.upkeep.writing(progress, create=True) as (store, indexer):
        if store.roots():
            raise LibraryError(
                f"{library.folder} contains your own documents, which the dataset would replace; name another folder "
                "with `--library`."
            )
        splitting = indexer.splitting()
        split_key = indexer.split_key(splitting)
        found = [_found(document, "ready-made" if document.chunks else split_key) for document in dataset.documents]
        known = {stored.path: stored for stored in store.documents()}
        changes = compare_documents(known, found, lambda _stored: True)
        store.supersede(changes.gone)
        for number, one in enumerate(changes.to_read, start=1):
            progress(Progress("read", number, len(changes.to_read), one.path))
            document = documents[Path(one.path)]
            chunks = document.ready_made() or splitting.split(document.document)
            with store.transaction():
                key = store.put_document(
                    document.document,
                    chunks,
                    size=one.stamp.size,
                    modified_ns=0,
                    sha256=one.sha256(),
                    split_key=one.split_key,
                )
                store.put_document_rows(document_rows([(key, document.document, chunks)]))
        indexer.make_live()
        indexer.write_contexts(60 * library.settings.context_minutes)
        return {stored.id: (documents[Path(stored.path)].id, stored.chunk) for stored in store.chunks()}


def find_golden_files(dataset: Dataset, library: Library) -> tuple[Dataset, dict[int, tuple[str, Chunk]]]:
    """Find the golden files of a dataset in a library in use.

    Return the dataset with their full paths, and chunk id -> (path, chunk without its text). Raises DatasetError for a
    file that is not in the library.
    """
    with library.documents.reading() as store:
        paths = [document.path for document in store.documents()]
        chunks = {stored.id: (stored.path, replace(stored.chunk, text="")) for stored in store.chunks()}

    def found(lines: GoldenLines) -> GoldenLines:
        wanted = os.path.normpath(dataset.folder.resolve() / lines.path)
        same = [path for path in paths if path == wanted] or [path for path in paths if path.endswith(f"/{lines.path}")]
        if len(same) != 1:
            raise DatasetError(
                f"{lines.path}, golden in {dataset.folder / 'questions.jsonl'}, matches "
                f"{'several files' if same else 'no file'} in the library {library.folder}; write its full path, index "
                "it, or name another library with `--library`."
            )
        return replace(lines, path=same[0])

    questions = [replace(one, lines=tuple(map(found, one.lines))) for one in dataset.questions]
    return replace(dataset, questions=tuple(questions)), chunks


def _found(document: DatasetDocument, split_key: str) -> ScannedFile:
    """Describe a document for `compare_documents`; its stamp matches nothing, so its content decides."""
    content = [document.document.title, document.document.kind, document.document.text, list(document.chunks.items())]
    sha256 = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return ScannedFile(str(document.document.path), FileStamp(len(document.document.text)), split_key, lambda: sha256)


def rows_of_documents(dataset: Dataset, library: Library) -> dict[int, str]:
    """Return the document of each row that represents a whole one: its id in the dataset, or its path."""
    names = {str(document.document.path): document.id for document in dataset.documents}
    with library.documents.reading() as store:
        return {key: names.get(path, path) for key, path in store.paths_of_document_rows().items()}


class Ranker:
    """Find the golden passages in rankings of chunk ids.

    A row that represents a whole document (`rows_of`) counts only for questions with golden documents.
    """

    def __init__(
        self,
        dataset: Dataset,
        chunks: Mapping[int, tuple[str, Chunk]],
        rows_of: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        self._document_of = {**rows_of, **{key: document for key, (document, _) in chunks.items()}}
        self._of_document: dict[str, list[tuple[int, Chunk]]] = {}
        for key, (document, chunk) in chunks.items():
            self._of_document.setdefault(document, []).append((key, chunk))
        self._ids = {
            name: self._of_document[document.id][position][0]
            for document in dataset.documents
            for position, name in enumerate(document.chunks)
        }

    def ranks(self, question: Question, rankings: Mapping[str, Sequence[int]]) -> tuple[int, dict[str, list[int]]]:
        """Return the number of golden passages, and stage -> their ranks."""
        chunks = [self._chunks_at(lines) for lines in question.lines]
        if question.documents or not all(chunks):
            documents = {
                stage: list(dict.fromkeys(self._document_of[key] for key in ranking))
                for stage, ranking in rankings.items()
            }
            golden: Collection[Any] = {*question.documents, *(lines.path for lines in question.lines)}
            return len(golden), {stage: golden_ranks(ranking, golden) for stage, ranking in documents.items()}
        golden = {self._ids[name] for name in question.chunks}.union(*chunks)
        for span in question.spans:
            golden |= self._golden_of(span)
        return len(golden), {stage: golden_ranks(ranking, golden) for stage, ranking in rankings.items()}

    def _chunks_at(self, lines: GoldenLines) -> set[int]:
        """Return the chunks that contain one of the lines; none if the lines are unknown or a whole file is golden."""
        return {
            key
            for key, chunk in self._of_document.get(lines.path, ())
            if lines.first and chunk.line and chunk.line <= lines.last and (chunk.end_line or chunk.line) >= lines.first
        }

    def _golden_of(self, span: GoldenSpan) -> set[int]:
        shared, half = {}, set()
        for key, chunk in self._of_document.get(span.document, ()):
            shared[key] = min(chunk.end, span.end) - max(chunk.start, span.start)
            if 2 * shared[key] >= min(span.end - span.start, chunk.end - chunk.start):
                half.add(key)
        most = max(shared, key=lambda key: shared[key], default=None)
        if most is None or shared[most] <= 0:
            raise DatasetError(
                f"No chunk of {span.document} overlaps the golden span {span.start} to {span.end}; correct "
                "questions.jsonl, or remove the chunks from documents.jsonl."
            )
        return half or {most}


def plot(reports: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw recall against depth, one line per stage; the lines of a second run are dashed.

    If questions were answered, also draw what share of the answers is wrong if only the most probable ones are given.
    """
    curves = [risk_coverage(report.get("per_answer", ())) for report in reports]
    figure = new_figure((12, 4.5) if any(curves) else (7, 4.5))
    axes = figure.add_subplot(
        1,
        2 if any(curves) else 1,
        1,
        xscale="log",
        xlabel="passages",
        ylabel="recall, %",
        title=f"{reports[0]['dataset']}, {reports[0]['part']}",
    )
    for style, report in zip(("-", "--"), reports, strict=False):
        rows = report["per_question"]
        for color, stage in enumerate(rows[0]["ranks"]):
            ranks = sorted((rank, 100 / row["golden"]) for row in rows for rank in row["ranks"][stage])
            depths = range(1, POOL + 1)
            sums = [0.0]
            for _, share in ranks:
                sums.append(sums[-1] + share)
            recalls = [sums[bisect_left(ranks, (depth + 1, 0.0))] / len(rows) for depth in depths]
            label = f"{stage}, {report['profile']}, context {report['context']}"
            axes.plot(depths, recalls, style, color=f"C{color}", label=label)
    axes.set_xticks((1, 5, 10, 20, 50, 150), ("1", "5", "10", "20", "50", "150"))
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    if any(curves):
        risk = figure.add_subplot(1, 2, 2, xlabel="questions answered, %", ylabel="of these wrong, %", title="answers")
        for style, curve in zip(("-", "--"), curves, strict=False):
            risk.plot([100 * share for share, _ in curve], [100 * wrong for _, wrong in curve], style, color="C0")
        risk.grid(alpha=0.3)
    save_figure(figure, path)


def load_report(path: Path) -> dict[str, Any]:
    """Read a report that `--json` wrote."""
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stage_values(report["per_question"])
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise DatasetError(
            f"{path} is not a report ({error}); write one with `local-rag eval DATASET --json FILE`."
        ) from None
    return report
