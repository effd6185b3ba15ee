"""Hooks of mkdocs (mkdocs.yml): the pages of the site are the repository's own files, under their own paths.

So a relative link leads to the same page on the site, in a clone and wherever else Markdown is shown.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = ("*.md", "docs/*.md", "decisions/*.md")
# What pages link to beside pages.
OTHERS = ("LICENSE", "docs/*.svg", "docs/images/*", "docs/*.css", "benchmarks/results/*")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Put the repository's pages, and what they link to, beside the theme's files."""
    root = Path(config.config_file_path).parent
    theme = [file for file in files if not (file.abs_src_path or "").startswith(config.docs_dir)]
    own = sorted(path for pattern in (*PAGES, *OTHERS) for path in root.glob(pattern))
    return Files(
        [
            *theme,
            *(File.generated(config, path.relative_to(root).as_posix(), abs_src_path=str(path)) for path in own),
        ]
    )


def on_page_markdown(markdown: str, **_: object) -> str:
    """Drop what follows the language of a block of code: tests read it, Markdown's extensions do not."""
    return re.sub(r"^```(\w+) [^\n]*$", r"```\1", markdown, flags=re.MULTILINE)
