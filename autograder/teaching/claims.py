"""The claims of the five articles: what each promises, and what would decide it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# A claim of "faster" or "less memory" holds where the whole interval says 10 % or more, unless it says itself
# how much; less is nothing to change code for.
WORTH_IT = 1.1


@dataclass(frozen=True)
class Article:
    """One of the five. ``link`` is None where no address of it is known."""

    title: str
    link: str | None = None


ARTICLES = {
    "A": Article("pytorch 笔记:pytorch 优化内容", "https://jishuzhan.net/article/1799750524577255426"),
    "B": Article("advanced features and performance of PyTorch"),
    "C": Article(
        "13个你一定要知道的PyTorch特性", "https://blog.csdn.net/u011984148/article/details/115683325"
    ),
    "D": Article(
        "torch.backends.cudnn.benchmark 和 torch.backends.cudnn.deterministic",
        "https://blog.csdn.net/yangweipeng708/article/details/138802498",
    ),
    "E": Article(
        "pytorch memory_format (a page of excerpts)", "https://cidian.kuaisou.com/pytorch+memory_format"
    ),
}


@dataclass(frozen=True)
class Claim:
    """What an article says, and what would decide it. ``words`` are the article's own, or its code.

    ``use`` is the situation in which somebody would follow it, after "when". ``promises`` is what a cell must
    show: a "speed" or a "memory" ratio of ``at_least`` or more, "correctness", or that something is there at
    all ("existence"). ``device`` is the one that it speaks of (None: any): cells on others do not count.
    ``cost``: what it promises costs time, and a ratio says how much; so no ratio speaks against it.
    """

    says: str
    use: str
    promises: Literal["speed", "memory", "correctness", "existence"]
    device: Literal["cpu", "cuda"] | None = None
    at_least: float = WORTH_IT
    cost: bool = False
    words: str | None = None

    @property
    def measurable(self) -> bool:
        """Whether a ratio decides it."""
        return self.promises in ("speed", "memory")


CLAIMS = {
    "A1": Claim(
        "Create tensors directly in torch, not from Python lists or NumPy.",
        "you need numbers on the CPU that no file holds",
        "speed",
        "cpu",
        words="直接创建Tensor,而不是从Python或Numpy中转换",
    ),
    "A2": Claim(
        "Create tensors on the target device; avoid round trips.",
        "numbers are made for a GPU",
        "speed",
        "cuda",
        words="直接在GPU中创建,减少.to(device)",
    ),
    "A3": Claim(
        "Use from_numpy and as_tensor instead of torch.tensor, which copies.",
        "the numbers are in a NumPy array",
        "speed",
        "cpu",
        words="使用 torch.from_numpy(numpy_array) … 代替 torch.tensor",
    ),
    "A4": Claim(
        "Pinned host memory makes copies to the GPU faster.",
        "batches go to a GPU",
        "speed",
        "cuda",
        words="可以加快数据从CPU到GPU的传输速度",
    ),
    "A5": Claim(
        "cudnn.benchmark = True pays off when shapes stay fixed.",
        "shapes stay fixed",
        "speed",
        "cuda",
        words="torch.backends.cudnn.benchmark 设置为 True",
    ),
    "B1": Claim(
        "Autograd records a graph in the forward pass; backward() fills .grad.",
        "you need gradients",
        "correctness",
        words="`backward()`",
    ),
    "B2": Claim(
        "The graph is dynamic: Python control flow works.",
        "the computation depends on the data",
        "correctness",
        words="`torch.where`",
    ),
    "B3": Claim(
        "torch.no_grad() for inference takes less memory and is faster.",
        "you do not need gradients",
        "speed",
        words="`torch.no_grad()`",
    ),
    "B4": Claim(
        "One line moves model and data to the GPU.",
        "you move a model or data to a device",
        "correctness",
        words="`.cuda()`",
    ),
    "B5": Claim(
        "nn.DataParallel(model) makes training on several GPUs faster.",
        "there are several GPUs",
        "speed",
        "cuda",
        words="`nn.DataParallel`",
    ),
    "B6": Claim(
        "init_process_group and DistributedDataParallel: two lines to several GPUs.",
        "you train in several processes",
        "correctness",
        words='`init_process_group("nccl")`',
    ),
    "B7": Claim(
        "Mixed precision takes less memory and is faster.",
        "you train or infer in 16 bits",
        "speed",
        words="`torch.cuda.amp`",
    ),
    "C1": Claim(
        "DatasetFolder and ImageFolder instead of a hand-written Dataset.",
        "samples lie in a folder for each class",
        "correctness",
        words="只要使用`DatasetFolder`就可以了",
    ),
    "C2": Claim(
        "Use the *_like functions instead of creating and moving.",
        "a tensor should be like another one",
        "correctness",
        words="到处使用`.to(device)`通常会导致性能下降,还会出现异常",
    ),
    "C3": Claim(
        "register_buffer for constants that move with the module.",
        "a module has constants",
        "correctness",
        words="将这些值随模块一起移动",
    ),
    "C4": Claim(
        "nn.Identity cuts a layer off.",
        "you want what goes into a layer",
        "correctness",
        words="用1:1的映射替换一些层",
    ),
    "C5": Claim(
        "torch.cdist is faster because it uses matrix multiplication.",
        "you need all distances",
        "speed",
        "cpu",
        words="在使用欧几里得距离时还自动使用矩阵乘法,从而提高了性能",
    ),
    "C6": Claim(
        "For all cosine similarities, F.cosine_similarity with broadcasting.",
        "you need all cosine similarities, and can wait for them",
        "correctness",
        words="PyTorch也有一个内置的余弦相似度实现",
    ),
    "C7": Claim(
        "F.normalize is better than dividing by the norm.",
        "rows may be zero",
        "correctness",
        words="在PyTorch中执行归一化的旧方法",
    ),
    "C8": Claim(
        "One wide Linear and torch.chunk instead of several Linears.",
        "several layers have the same input",
        "speed",
        words="这种方法通常会带来更高的性能",
    ),
    "C9": Claim(
        "masked_select, data[mask] and data * mask; gradients flow.",
        "you choose elements by a condition",
        "correctness",
        words="当需要梯度时也可以使用这个操作",
    ),
    "C10": Claim(
        "torch.where joins two tensors; gradients flow.",
        "each element comes from one of two tensors",
        "correctness",
        words="如果条件是真,那么从第一个张量中取元素,如果条件是假,从第二个张量中取元素",
    ),
    "C11": Claim(
        "Tensor.scatter writes values at given positions.",
        "values go to given places",
        "correctness",
        words="`index`变量表示`data`张量的第i个值应该放在`values`张量的哪个位置",
    ),
    "C12": Claim(
        "F.interpolate resizes inside the forward pass.",
        "a model resizes its pictures",
        "correctness",
        words="可以在前向传递中调整图像(或任何中间张量),并保持梯度流",
    ),
    "C13": Claim(
        "make_grid shows many pictures without plotting code.",
        "you want to look at many pictures",
        "correctness",
        words="不需要使用matplotlib或一些外部库来复制粘贴代码来显示图像网格",
    ),
    "D1": Claim(
        "cuDNN speeds up convolution, pooling, normalisation and activation.",
        "a model has convolutions",
        "speed",
        "cuda",
        words="提供了高度优化的卷积操作、池化、归一化以及激活层等",
    ),
    "D2": Claim(
        "benchmark=True for fixed input sizes.",
        "shapes stay fixed",
        "speed",
        "cuda",
        words="可能会在你的模型运行时提供显著的速度提升。尤其是对于那些层尺寸和数据批量大小不会变化的模型来说",
    ),
    "D3": Claim(
        "With changing sizes, benchmark = True is slower: leave it off.",
        "shapes change",
        "speed",
        "cuda",
        words="在每次输入尺寸改变时,benchmark=True 会重新搜索最优算法,这个搜索过程本身可能会带来额外的开销",
    ),
    "D4": Claim(
        "deterministic=True gives the same result each run, and may cost speed.",
        "only cuDNN's convolutions keep a run from repeating",
        "correctness",
        "cuda",
        cost=True,
        words="`deterministic=True`",
    ),
    "D5": Claim(
        "For repeatable runs also set benchmark=False and seed everything.",
        "a run must repeat",
        "correctness",
        words="`benchmark=False`",
    ),
    "D6": Claim(
        "Determinism across machines is not promised.",
        "you move to another machine or release",
        "correctness",
    ),
    "E1": Claim(
        "Strides tell the memory format; the shape does not change.",
        "you want to know a tensor's memory format",
        "correctness",
        words="(10, 3, 32, 32) as dimensions order preserved",
    ),
    "E2": Claim(
        "view and reshape adapt a tensor to memory formats.",
        "you want another memory format",
        "correctness",
        words="使用torch.Tensor.view()或torch.Tensor.reshape()方法重新调整Tensor的形状,以适应不同的内存格式需求",
    ),
    "E3": Claim(
        "channels_last with mixed precision is 8 % to 35 % faster.",
        "a network of convolutions trains in 16 bits",
        "speed",
        "cuda",
        at_least=1.08,
        words="这种NHWC格式与FP16的AMP一起使用可以获得8%到35%的加速",
    ),
    "E4": Claim(
        "contiguous, clone and zeros_like take a memory format.",
        "a copy should have a memory format",
        "correctness",
        words="`zeros_like(memory_format=preserve_format)`",
    ),
    "E5": Claim(
        "Module.to(memory_format=) converts 4-D parameters and buffers.",
        "a whole model should be in channels_last",
        "correctness",
        words="`Module.to(memory_format=)`",
    ),
    "E6": Claim(
        "Convolution, pooling and upsampling on CPU gain from channels_last.",
        "you choose a memory format on a CPU",
        "speed",
        "cpu",
        words="范例:MaxPool2d 特例I:Upsampling Kernel (CF) 的优化 特例II: VGGM 中 AvgPool3d 的优化",
    ),
    "E7": Claim(
        "CPU speed comes from memory format, threads and vectorisation.",
        "a model runs on a CPU",
        "speed",
        "cpu",
        words="向量化(Vectorization)就是指一条指令多个数据的技术,是提高CPU性能的另一种常用手段",
    ),
    "E8": Claim(
        "Tensor.pinned() and torch.cuda.set_memory_format().",
        "you want pinned memory, or a memory format on a GPU",
        "existence",
        words="在GPU上使用torch.cuda.set_memory_format()方法设置合适的内存格式",
    ),
    "E9": Claim(
        "Pruning with a mask that is computed once and multiplied in a forward pre-hook.",
        "you prune a layer",
        "correctness",
        words="`contiguous_format`",
    ),
}
