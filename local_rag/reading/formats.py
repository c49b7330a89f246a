"""The formats that local-rag reads, and those that it skips: one table from suffix to format.

To add a format, write a function in `converters/` and add its suffix to `_CONVERTERS`; for source code add the suffix
to `_LANGUAGES`. A suffix that is also in `_UNSUPPORTED` is read all the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from local_rag.reading.converters.books import convert_epub
from local_rag.reading.converters.converted import Converted
from local_rag.reading.converters.html_pages import convert_html
from local_rag.reading.converters.mail import convert_mail, convert_mailbox, convert_web_archive
from local_rag.reading.converters.notebooks import convert_notebook
from local_rag.reading.converters.office import convert_docx, convert_pptx
from local_rag.reading.converters.open_document import convert_odp, convert_ods, convert_odt
from local_rag.reading.converters.outlook import convert_msg
from local_rag.reading.converters.pdf import convert_pdf
from local_rag.reading.converters.rich_text import convert_rtf
from local_rag.reading.converters.sheets import convert_csv, convert_xlsx
from local_rag.reading.converters.subtitles import convert_subtitles
from local_rag.records import DocumentKind


@dataclass(frozen=True, slots=True)
class Format:
    """How files with a suffix are read: converted, or decoded as text of a kind."""

    kind: DocumentKind = "text"
    language: str | None = None  # of source code
    convert: Callable[[bytes], Converted] | None = None  # also determines the kind
    is_archive: bool = False  # to be checked before it is converted
    unsupported: str = ""  # why such files are skipped without being opened


_MARKDOWN = ".md .markdown .mdown .mkd .mdx .qmd .rmd"
_CONVERTERS: dict[str, Callable[[bytes], Converted]] = {
    ".csv .tsv": convert_csv,
    ".eml": convert_mail,
    ".mbox": convert_mailbox,
    ".mht .mhtml": convert_web_archive,
    ".msg": convert_msg,
    ".rtf": convert_rtf,
    ".srt .vtt": convert_subtitles,
    ".htm .html .xhtml": convert_html,
    ".ipynb": convert_notebook,
    ".pdf": convert_pdf,
}
_ARCHIVES: dict[str, Callable[[bytes], Converted]] = {
    ".docx": convert_docx,
    ".epub": convert_epub,
    ".odp": convert_odp,
    ".ods": convert_ods,
    ".odt": convert_odt,
    ".pptx": convert_pptx,
    ".xlsx": convert_xlsx,
}
_LANGUAGES = {
    "c": ".c .h",
    "c#": ".cs",
    "c++": ".cc .cpp .cxx .hpp .hh .hxx",
    "clojure": ".clj .cljs",
    "css": ".css .scss .less",
    "dart": ".dart",
    "elixir": ".ex .exs",
    "erlang": ".erl",
    "go": ".go",
    "graphql": ".graphql",
    "haskell": ".hs",
    "ini": ".ini .cfg .conf",
    "java": ".java",
    "javascript": ".js .jsx .mjs .cjs",
    "json": ".json",
    "julia": ".jl",
    "kotlin": ".kt .kts",
    "lua": ".lua",
    "objective-c": ".m .mm",
    "perl": ".pl .pm",
    "php": ".php",
    "powershell": ".ps1",
    "protobuf": ".proto",
    "python": ".py .pyi",
    "r": ".r",
    "ruby": ".rb",
    "rust": ".rs",
    "scala": ".scala",
    "shell": ".sh .bash .zsh .fish",
    "sql": ".sql",
    "swift": ".swift",
    "terraform": ".tf",
    "toml": ".toml",
    "typescript": ".ts .tsx",
    "xml": ".xml .xsd .xsl",
    "yaml": ".yaml .yml",
}
# Skipped without being opened. The reader detects other binary files when it opens them.
_UNSUPPORTED = {
    "image, not a document": ".png .jpg .jpeg .gif .bmp .tif .tiff .webp .ico .svg .heic .avif .psd .ai .eps .xcf",
    "audio or video, not a document": ".mp3 .wav .flac .ogg .m4a .aac .opus .mp4 .m4v .mkv .mov .avi .webm .wmv",
    "archive, not a document": ".zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .iso .dmg .whl .jar .war .deb .rpm .apk .cab",
    "program, not a document": ".exe .dll .so .dylib .o .a .lib .obj .class .pyc .pyd .wasm .msi .bin",
    "font, not a document": ".ttf .otf .woff .woff2 .eot",
    "data file, not a document": ".jsonl .ndjson .parquet .arrow .feather .avro .npy .npz .pkl .pickle .h5 .hdf5 .mat "
    ".rds .sqlite .sqlite3 .db .mdb .dat .gguf .safetensors .pt .pth .onnx .ckpt .map",
    "unsupported document format": ".doc .xls .ppt .xlsb .pages .numbers .key .mobi .azw .azw3 "
    ".djvu .ps .one .vsd .vsdx",
}

_KEYS = "a file of keys or passwords, which is never read"
_KEY_SUFFIXES = ".pem .ppk .p12 .pfx .p8 .jks .keystore .kdb .kdbx .keytab .ovpn .tfstate .tfvars"
_KEY_NAMES = (
    "id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk credentials credentials.json credentials.csv secrets "
    "secrets.json secrets.yaml secrets.yml secrets.toml htpasswd shadow .env .netrc .pgpass .npmrc .pypirc .htpasswd "
    ".git-credentials"
)

# Later entries replace earlier ones, so a format that can be read is never skipped as unsupported.
FORMATS: Mapping[str, Format] = {
    **{suffix: Format(unsupported=_KEYS) for suffix in _KEY_SUFFIXES.split()},
    **{suffix: Format(unsupported=reason) for reason, suffixes in _UNSUPPORTED.items() for suffix in suffixes.split()},
    **{suffix: Format("code", language) for language, suffixes in _LANGUAGES.items() for suffix in suffixes.split()},
    **{suffix: Format("markdown") for suffix in _MARKDOWN.split()},
    **{suffix: Format(convert=convert) for suffixes, convert in _CONVERTERS.items() for suffix in suffixes.split()},
    **{suffix: Format(convert=convert, is_archive=True) for suffix, convert in _ARCHIVES.items()},
}
_BY_NAME = dict.fromkeys(_KEY_NAMES.split(), Format(unsupported=_KEYS))
_PLAIN_TEXT = Format()


def format_of(path: Path) -> Format:
    """Return the format of a file by its name; unknown suffixes are read as plain text."""
    return format_named(path.name)


def format_named(name: str) -> Format:
    """Return the format of a file by its name."""
    if found := _BY_NAME.get(name.lower()):
        return found
    stem, dot, suffix = name.rpartition(".")
    return FORMATS.get(f".{suffix}".lower(), _PLAIN_TEXT) if stem and dot and suffix else _PLAIN_TEXT
