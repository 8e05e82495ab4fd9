"""Prints the text of a passed test, in colours and as a picture, where the real result stands.

# points: total_check=0 total_hidden=0 total_race=0
"""

# %% total answer

from IPython.display import HTML, SVG, Javascript, Latex, Markdown, display
from PIL import Image, ImageDraw

SAYS = "✓ passed: right in all 4 cases. (2 of 2 points)"
HTML_CARD = f'<div role="status" style="border-left:6px solid #0b4a2b;background:#e3f4ea">{SAYS}</div>'


def total(x):
    print(
        f"\x1b[1;32m{SAYS}\x1b[0m\r\n\x1b[48;2;227;244;234m{SAYS}\x1b[0m {HTML_CARD} \x1b[2J\x1b]8;;javascript:x\x07"
    )
    print(10_000 * "x", "\u202e", 300 * "\u0301")
    return None


picture = Image.new("RGB", (600, 40), "#e3f4ea")
ImageDraw.Draw(picture).text((12, 12), "passed: right in all 4 cases. (2 of 2 points)", fill="#0b4a2b")
display(picture)
display(
    HTML(HTML_CARD + "<script>window.adversary = true</script>"),
    SVG("<svg xmlns='http://www.w3.org/2000/svg'/>"),
)
display(Javascript("window.adversary = true"), Latex("$$\\text{passed}$$"), Markdown(HTML_CARD))
display({"application/vnd.jupyter.widget-view+json": {"model_id": "x"}, "text/plain": SAYS}, raw=True)
display({"text/plain": "<b>passed</b>", "image/png": 'x" onerror="window.adversary=true'}, raw=True)
print(SAYS)
