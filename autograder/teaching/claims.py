"""The claims that the course tests, and what this session's cells have found out about them."""

from __future__ import annotations

from ..measuring.duel import Ratio
from ..show import show, table_html, table_text

# A claim of "faster" holds where the whole interval says 10 % or more; less is nothing to change code for.
WORTH_IT = 1.1
WORDS = ("holds", "depends", "does not hold", "wrong")

CLAIMS = {
    "A1": "Create tensors directly in torch, not from Python lists or NumPy.",
    "A2": "Create tensors on the target device; avoid round trips.",
    "A3": "Use from_numpy and as_tensor instead of torch.tensor, which copies.",
    "A4": "Pinned host memory makes copies to the GPU faster.",
    "A5": "cudnn.benchmark = True pays off when shapes stay fixed.",
    "B1": "Autograd records a graph in the forward pass; backward() fills .grad.",
    "B2": "The graph is dynamic: Python control flow works.",
    "B3": "torch.no_grad() for inference takes less memory and is faster.",
    "B4": "One line moves model and data to the GPU.",
    "B5": "nn.DataParallel is the way to several GPUs.",
    "B6": "init_process_group and DistributedDataParallel: two lines to several GPUs.",
    "B7": "Mixed precision takes less memory and is faster.",
    "C1": "DatasetFolder and ImageFolder instead of a hand-written Dataset.",
    "C2": "Use the *_like functions instead of creating and moving.",
    "C3": "register_buffer for constants that move with the module.",
    "C4": "nn.Identity cuts a layer off.",
    "C5": "torch.cdist is faster because it uses matrix multiplication.",
    "C6": "For all cosine similarities, F.cosine_similarity with broadcasting.",
    "C7": "F.normalize is better than dividing by the norm.",
    "C8": "One wide Linear and torch.chunk instead of several Linears.",
    "C9": "masked_select, data[mask] and data * mask select; gradients flow.",
    "C10": "torch.where joins two tensors; gradients flow.",
    "C11": "Tensor.scatter writes values at given positions.",
    "C12": "F.interpolate resizes inside the forward pass.",
    "C13": "make_grid is better than plotting code.",
    "D1": "cuDNN speeds up convolution, pooling, normalisation and activation.",
    "D2": "benchmark=True for fixed input sizes.",
    "D3": "With changing sizes every new shape is searched again: leave it off.",
    "D4": "deterministic=True gives the same result each run, and may cost speed.",
    "D5": "For repeatable runs also set benchmark=False and seed everything.",
    "D6": "Determinism across machines is not promised.",
    "E1": "Strides tell the memory format; the shape does not change.",
    "E2": "view and reshape adapt the shape.",
    "E3": "channels_last with mixed precision is 8 % to 35 % faster.",
    "E4": "contiguous, clone and zeros_like take a memory format.",
    "E5": "Module.to(memory_format=) converts 4-D parameters and buffers.",
    "E6": "Convolution, pooling and upsampling on CPU gain from channels_last.",
    "E7": "CPU speed comes from memory format, threads and vectorisation.",
    "E8": "Tensor.pinned() and torch.cuda.set_memory_format().",
    "E9": "Pruning with a mask computed in a forward pre-hook.",
}


# claim -> what was looked at -> (word, reason)
_found: dict[str, dict[str, tuple[str, str]]] = {}


def note_finding(claim: str, subject: str, word: str, reason: str) -> None:
    """Remember what a cell found out about a claim; a cell that is run again replaces its own finding."""
    if claim not in CLAIMS:
        raise ValueError(f"There is no claim {claim!r}. The claims are {', '.join(CLAIMS)}.")
    if word not in WORDS:
        raise ValueError(f"A verdict is one of {', '.join(WORDS)}, not {word!r}.")
    _found.setdefault(claim, {})[subject] = (word, reason)


def word_for(ratio: Ratio) -> str:
    """The verdict that a measured ratio gives."""
    return "holds" if ratio.low >= WORTH_IT else "does not hold"


def overall(words: list[str]) -> str:
    """One word for several findings; findings that differ make "depends"."""
    return words[0] if len(set(words)) == 1 else "depends"


def verdict(claim: str, word: str, because: str, *, shown: bool) -> None:
    """State a verdict that no stopwatch can give, with the expression that shows it.

    ``because`` is one sentence. Raises AssertionError where ``shown`` is false: then what the chapter says
    is not so with this version of torch.
    """
    if not shown:
        raise AssertionError(f"Not so here: {because}")
    note_finding(claim, because, word, because)
    show(f"{claim} {word}: {because}", f"<p><b>{claim} {word}:</b> {because}</p>")


def verdicts(*claims: str) -> None:
    """Show what this session found out about each of the given claims."""
    rows = []
    for claim in claims:
        findings = list(_found.get(claim, {}).values())
        word = overall([word for word, _ in findings]) if findings else "not measured here"
        reasons = "\n".join(f"{found}: {reason}" for found, reason in findings)
        rows.append((claim, CLAIMS[claim], word, reasons))
    header = ("claim", "what it says", "here", "because")
    show(table_text(header, rows), table_html(header, rows, "Verdicts on the claims of this chapter"))
