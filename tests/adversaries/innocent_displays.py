"""Innocent: tables, pictures and text displayed in every way, in answers, too.

# points:
# suspicious: no
"""

# %% extra first
from IPython.display import HTML, Markdown, clear_output, display


class Table:
    def _repr_html_(self):
        return "<table><tr><td>1</td></tr></table>"

    def __repr__(self):
        return "a table"


display(Table(), HTML("<b>bold</b>"), Markdown("# words"))
handle = display("waiting", display_id=True)
handle.update("done")
clear_output(wait=True)
Table()


# %% shift answer
import matplotlib.pyplot as plt

figure, axis = plt.subplots()
axis.plot([1, 2])


def shift(x, steps):
    display(Table())
    result = torch.roll(x, steps, dims=1)
    result
    return result


shift(torch.ones(2, 3), 1)
