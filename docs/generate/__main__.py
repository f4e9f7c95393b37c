"""Write the generated pages: `python -m docs.generate`."""

from docs.generate.pages import PAGES, REFERENCE

for name, text in PAGES.items():
    (REFERENCE / name).write_text(text(), encoding="utf-8")
