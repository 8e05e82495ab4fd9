"""Links and pictures in Markdown that run scripts, load from elsewhere, or lead into the reader's own server.

# points:
"""

# %% notebook edit
from nbformat.v4 import new_markdown_cell

far = "https://adversary.invalid/page"
for text in [
    "[a](javascript:window.adversary=true) [b](JaVaScRiPt:window.adversary=true) <javascript:window.adversary=true>",
    "[c](<java\tscript:window.adversary=true>) [d](&#106;avascript:window.adversary=true) [e][ref]",
    "[ref]: javascript:window.adversary=true",
    "<a href='java&Tab;script&colon;window.adversary=true'>f</a> <a href='\x01javascript:window.adversary=true'>g</a>",
    "<a href='data:text/html,<script>opener.adversary=true</script>'>h</a> <a href=vbscript:x>i</a>",
    "<a href='//adversary.invalid/page'>j</a> <a href='/formgrader/api/status'>k</a> <a href='look.html'>l</a>",
    f"![m]({far}.png) <img src='{far}.gif' srcset='{far}.webp 2x'> <img src=//adversary.invalid/page.jpg>",
    f"<picture><source srcset='{far}'><img></picture> <video poster={far} src={far}></video> <audio src={far}></audio>",
    f"<link rel=stylesheet href={far}.css><link rel=prefetch href={far}><style>@import '{far}.css';</style>",
    f"<div style='background:url({far}.png)'>n</div> <table background={far}.png><tr><td>o</td></tr></table>",
    f"<base href='{far}/'><meta http-equiv=refresh content='0;url={far}'> <iframe src={far}></iframe>",
    f"<form action={far}><button>p</button></form> <a href=#x ping={far}>q</a> <object data={far}></object>",
    "<svg><image href='https://adversary.invalid/x.png'></image><use href='https://adversary.invalid/x#y'></use></svg>",
    "![r](data:image/svg+xml;base64,PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciLz4=) ![s](file:///etc/passwd)",
]:
    notebook.cells.append(new_markdown_cell(text))
