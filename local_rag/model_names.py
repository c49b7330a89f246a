"""Names of models that name files: a path, or MODEL+ADAPTER. Nothing heavy is imported for them."""

from pathlib import Path

MODEL_SETTINGS = ("context_model", "answer_model", "embed_model", "rerank_model")


def adapter_in(name: str) -> tuple[str, Path] | None:
    """Split MODEL+ADAPTER at the plus that the path of a file follows; either path may have others in it."""
    for plus in (place for place, letter in enumerate(name) if letter == "+"):
        if (adapter := Path(name[plus + 1 :]).expanduser()).is_file():
            return name[:plus], adapter.resolve()
    return None


def parts_of(name: str) -> tuple[str, ...]:
    """Return what a name stands for: the name or path of a model, and perhaps the path of an adapter, as written."""
    found = None if Path(name).expanduser().exists() else adapter_in(name)
    return (found[0], name[len(found[0]) + 1 :]) if found else (name,)


def independent_of_folder(name: str) -> str:
    """Return the name of a model as it is in any working directory: with whole paths in the place of relative ones.

    A folder named without a slash may also have the name of a model of the registry, so it stays as it is.
    """
    path = Path(name).expanduser()
    if path.is_file() or ("/" in name and path.exists()):
        return str(path.resolve())
    if found := adapter_in(name):
        model, adapter = found
        return f"{independent_of_folder(model)}+{adapter}"
    return name
