"""Windows larger than memory: SlideM and Shared SlideM (Mendes, Bizarro and Marques, ICPE 2013).

`codec`, `residency`, `numbers` and `formulas` are pure; `medium` and `folder` alone touch files, so that
another runtime can keep the same blocks elsewhere.
"""
