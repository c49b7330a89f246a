"""The formats that local-rag reads, and those that it skips: one table from suffix to format.

To add a format, write a function in `converters/` and add its suffix to `_CONVERTERS`; for source code add the suffix
to `_LANGUAGES`. A suffix that is also in `_UNSUPPORTED` is read all the same. Converters are named, not imported,
because only the process that reads files needs them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

from local_rag.document_records import DocumentKind
from local_rag.reading.mailbox import is_message

EMPTY, NO_TEXT, NOT_REGULAR = "empty", "contains no text", "not a regular file"
BINARY = "binary file, not a document"
PRIVATE_KEY = "a private key, which is never read"
KEYS = "a file of keys or passwords, which is never read"
IMAGE = "image, not a document"
MEDIA = "audio or video, not a document"
ARCHIVE = "archive, not a document"
PROGRAM = "program, not a document"
FONT = "font, not a document"
DATA = "data file, not a document"
DELETED = "deleted in the mail program"
LOCK = "the lock of an office program on a document that is open"
_EXPECTED = {
    EMPTY, NO_TEXT, NOT_REGULAR, BINARY, PRIVATE_KEY, KEYS, IMAGE, MEDIA, ARCHIVE, PROGRAM, FONT, DATA, DELETED, LOCK
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format:
    """How files with a suffix are read: converted, or decoded as text of a kind."""

    kind: DocumentKind = "text"
    language: str | None = None  # of source code
    converter: str = ""  # the function in `converters/` that reads them, which also determines the kind
    is_archive: bool = False  # to be checked before it is converted
    unsupported: str = ""  # why such files are skipped without being opened


_MARKDOWN = ".md .markdown .mdown .mkd .mdx .qmd .rmd"

_CONVERTERS = {
    ".canvas": "canvas.convert_canvas",
    ".csv .tsv": "sheets.convert_csv",
    ".eml": "mail.convert_mail",
    ".enex": "evernote.convert_evernote",
    ".ics .ical": "calendars.convert_calendar",
    ".mbox": "mail.convert_mailbox",
    ".mht .mhtml": "mail.convert_web_archive",
    ".msg": "outlook.convert_msg",
    ".rtf": "rich_text.convert_rtf",
    ".vcf .vcard": "contacts.convert_contacts",
    ".srt .vtt": "subtitles.convert_subtitles",
    ".htm .html .xhtml": "html_pages.convert_html",
    ".ipynb": "notebooks.convert_notebook",
    ".pdf": "pdf.convert_pdf",
    ".bmp .jpeg .jpg .png .tif .tiff .webp": "images.convert_image",
}

_ARCHIVES = {
    ".docx .docm .dotx .dotm": "office.convert_docx",
    ".epub": "books.convert_epub",
    ".odp .otp": "open_document.convert_odp",
    ".ods .ots": "open_document.convert_ods",
    ".odt .ott": "open_document.convert_odt",
    ".pptx .pptm .potx .potm .ppsx .ppsm": "office.convert_pptx",
    ".xlsx .xlsm .xltx .xltm": "sheets.convert_xlsx",
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
    IMAGE: ".gif .ico .svg .heic .avif .psd .ai .eps .xcf",
    MEDIA: ".mp3 .wav .flac .ogg .m4a .aac .opus .mp4 .m4v .mkv .mov .avi .webm .wmv",
    ARCHIVE: ".zip .tar .gz .tgz .bz2 .xz .zst .7z .rar .iso .dmg .whl .jar .war .deb .rpm .apk .cab",
    PROGRAM: ".exe .dll .so .dylib .o .a .lib .obj .class .pyc .pyd .wasm .msi .bin",
    FONT: ".ttf .otf .woff .woff2 .eot",
    DATA: ".jsonl .ndjson .parquet .arrow .feather .avro .npy .npz .pkl .pickle .h5 .hdf5 .mat "
    ".rds .msf .sqlite .sqlite3 .db .mdb .dat .gguf .safetensors .pt .pth .onnx .ckpt .map",
    "a pointer to a document elsewhere; save the document itself here": ".gdoc .gsheet .gslides .gdraw .gform "
    ".gtable .gsite .gmap .gjam .glink .gscript .url .webloc .website .lnk",
    "unsupported document format; save it as .docx, .xlsx, .pptx or .pdf": ".doc .xls .ppt .xlsb .pages .numbers .key "
    ".mobi .azw .azw3 .djvu .ps .one .vsd .vsdx",
}

_KEY_SUFFIXES = ".pem .ppk .p12 .pfx .p8 .jks .keystore .kdb .kdbx .keytab .ovpn .tfstate .tfvars"

_KEY_NAMES = (
    "id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk credentials credentials.json credentials.csv secrets "
    "secrets.json secrets.yaml secrets.yml secrets.toml htpasswd shadow .env .netrc .pgpass .npmrc .pypirc .htpasswd "
    ".git-credentials"
)

# Later entries replace earlier ones, so a format that can be read is never skipped as unsupported.
FORMATS: Mapping[str, Format] = {
    **{suffix: Format(unsupported=KEYS) for suffix in _KEY_SUFFIXES.split()},
    **{suffix: Format(unsupported=reason) for reason, suffixes in _UNSUPPORTED.items() for suffix in suffixes.split()},
    **{suffix: Format("code", language) for language, suffixes in _LANGUAGES.items() for suffix in suffixes.split()},
    **{suffix: Format("markdown") for suffix in _MARKDOWN.split()},
    **{suffix: Format(converter=name) for suffixes, name in _CONVERTERS.items() for suffix in suffixes.split()},
    **{
        suffix: Format(converter=name, is_archive=True)
        for suffixes, name in _ARCHIVES.items()
        for suffix in suffixes.split()
    },
}

_BY_NAME = dict.fromkeys(_KEY_NAMES.split(), Format(unsupported=KEYS))
_BY_NAME["zotero.sqlite"] = Format(converter="zotero.convert_zotero")

PLAIN_TEXT = Format()


def format_of(path: PurePath) -> Format:
    """Return the format of a file by its name; unknown suffixes are read as plain text."""
    return FORMATS[".eml"] if is_message(path) else format_named(path.name)


def format_named(name: str) -> Format:
    """Return the format of a file by its name."""
    if found := _BY_NAME.get(name.lower()):
        return found
    if name.startswith("~$"):
        return Format(unsupported=LOCK)
    stem, dot, suffix = name.rpartition(".")
    return FORMATS.get(f".{suffix}".lower(), PLAIN_TEXT) if stem and dot and suffix else PLAIN_TEXT


_SOURCES = {  # what a reader calls a document, by the converter of its format
    "mail.convert_mail": "mail",
    "outlook.": "mail",
    "sheets.": "sheet",
    "open_document.convert_ods": "sheet",
    "html_pages.": "page",
    "mail.convert_web_archive": "page",
    "office.convert_pptx": "slides",
    "open_document.convert_odp": "slides",
    "calendars.": "calendar",
    "contacts.": "contact",
}


def kind_of_source(path: str) -> str:
    """Return what a reader calls a document by its format, such as `mail` or `sheet`; empty if that says nothing."""
    converter = format_of(PurePath(path)).converter
    return next((kind for begins, kind in _SOURCES.items() if converter.startswith(begins)), "")


def is_mail(path: str) -> bool:
    """Return whether a document is a mail."""
    return kind_of_source(path) == "mail"


def is_expected(reason: str) -> bool:
    """Return whether nothing is lost with a file that is not read for a reason."""
    return reason in _EXPECTED
