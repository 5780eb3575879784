# A lecturer teaches mapping: the log blocks of docs/own-scheme.md are copied from the page, tested and plotted.
python - "$PAGES/own-scheme.md" <<'PYTHON'
import re
import sys

blocks = re.findall(r"^```python\n(.*?)^```", open(sys.argv[1], encoding="utf-8").read(), re.M | re.S)
with open("scheme.py", "w", encoding="utf-8") as file:
    file.write("\n".join(blocks))
PYTHON
MPLBACKEND=agg python scheme.py
test -s amplification.png
