"""The claims of five articles and of the documentation: what each promises, and what would decide it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

# A claim of "faster" or "less memory" holds where the whole interval says 10 % or more, unless it says itself
# how much; less is nothing to change code for.
WORTH_IT = 1.1


@dataclass(frozen=True)
class Source:
    """Who makes claims. ``link`` is None where no address is known."""

    title: str
    link: str | None = None
    kind: Literal["article", "documentation"] = "article"


# The first letter of a claim -> who makes it.
SOURCES = {
    "A": Source("pytorch 笔记:pytorch 优化内容", "https://jishuzhan.net/article/1799750524577255426"),
    "B": Source("advanced features and performance of PyTorch"),
    "C": Source(
        "13个你一定要知道的PyTorch特性", "https://blog.csdn.net/u011984148/article/details/115683325"
    ),
    "D": Source(
        "torch.backends.cudnn.benchmark 和 torch.backends.cudnn.deterministic",
        "https://blog.csdn.net/yangweipeng708/article/details/138802498",
    ),
    "E": Source(
        "pytorch memory_format (a page of excerpts)", "https://cidian.kuaisou.com/pytorch+memory_format"
    ),
    "F": Source(
        "PyTorch's and Triton's documentation", "https://docs.pytorch.org/docs/stable/", "documentation"
    ),
}


@dataclass(frozen=True)
class Claim:
    """What is said, and what would decide it. ``words`` are the source's own, or its code; ``link`` is the
    page of the documentation that has them.

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
    link: str | None = None

    @property
    def measurable(self) -> bool:
        """Whether a ratio decides it."""
        return self.promises in ("speed", "memory")


# Claims about the library that NVIDIA's GPUs take for convolutions.
CUDNN = {"A5", "D1", "D2", "D3", "D4"}

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
    "F1": Claim(
        'torch.compile(m, "reduce-overhead") turns on CUDA graphs.',
        "launches cost more than the work",
        "existence",
        words='It can be enabled using torch.compile(m, "reduce-overhead")',
        link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    "F2": Claim(
        'mode="reduce-overhead" makes small batches faster, by CUDA graphs.',
        "many small operations run on a GPU",
        "speed",
        "cuda",
        words=(
            '"reduce-overhead" is a mode that reduces the overhead of python with CUDA graphs, '
            "useful for small batches."
        ),
        link="https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
    ),
    "F3": Claim(
        "Another int or float is another compilation.",
        "a Python number changes from call to call",
        "correctness",
        words=(
            "By default, `int` / `float` variables are treated as constants and are guarded on "
            "their exact value. In the below example, we have a recompilation for each function"
            " call."
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_"
            "model.recompilation.html"
        ),
    ),
    "F4": Claim(
        "A module that counts its steps is compiled anew at each call.",
        "a module changes a number of its own",
        "correctness",
        words=(
            "An integer that changes every call -- such as a step counter incremented inside "
            "`forward` -- therefore triggers a recompilation on each call"
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_"
            "model.recompilation.html"
        ),
    ),
    "F5": Claim(
        "After the limit of 8 versions, a function runs eagerly.",
        "a function is compiled again and again",
        "correctness",
        words=(
            "If the Dynamo cache limit is hit, then all future compilation attempts will result"
            " in the function being skipped (run eagerly)."
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_"
            "model.recompilation.html"
        ),
    ),
    "F6": Claim(
        "Compile a repeated region instead of the whole model: a shorter first call.",
        "a model repeats a layer, and its first call takes long",
        "speed",
        words=(
            "Applying compilation to a repeated region, instead of full model, leads to large "
            "savings in compile time."
        ),
        link="https://docs.pytorch.org/tutorials/recipes/regional_compilation.html",
    ),
    "F7": Claim(
        "torch.compile graph breaks on control flow and values that depend on data.",
        "a compiled function asks a tensor for its value",
        "correctness",
        words=(
            "`torch.compile` graph breaks on data-dependent operations such as data-dependent "
            "control flow (if-statements, loops with tensors) and direct tensor data accesses "
            "(`.item`, `.data_ptr`)."
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_"
            "model.common_graph_breaks.html"
        ),
    ),
    "F8": Claim(
        "Compile a module with its own method, not with torch.compile(module).",
        "a compiled model is saved and loaded",
        "correctness",
        words=(
            "we advise using the `.compile()` method of `nn.Module` instances if you wish to "
            "compile them as top-level functions"
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_"
            "model.where_to_apply_compile.html"
        ),
    ),
    "F9": Claim(
        "On a CPU, choosing a backend of attention with sdpa_kernel has no effect.",
        "attention runs on a CPU",
        "correctness",
        "cpu",
        words=(
            "If you don’t have a GPU and are running on CPU then with FP32 the context manager "
            "will have no effect"
        ),
        link="https://docs.pytorch.org/tutorials/intermediate/scaled_dot_product_attention_tutorial.html",
    ),
    "F10": Claim(
        "The function's boolean mask means the opposite of nn.MultiheadAttention's key_padding_mask.",
        "a padding mask moves from the layer to the function",
        "correctness",
        words=(
            "The boolean mask semantics for attn_mask are the inverse of MultiheadAttention's "
            "key_padding_mask."
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_produ"
            "ct_attention.html"
        ),
    ),
    "F11": Claim(
        "With fewer queries than keys, is_causal counts the positions from the upper left.",
        "new positions meet a cache of keys",
        "correctness",
        words="The attention masking has the form of the upper left causal bias due to the alignment",
        link=(
            "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_produ"
            "ct_attention.html"
        ),
    ),
    "F12": Claim(
        "The tutorial's block is causal self-attention.",
        "the tutorial's block goes into a language model",
        "correctness",
        words=(
            "if self.training: dropout = self.dropout is_causal = self.is_causal else: dropout "
            "= 0.0 is_causal = False"
        ),
        link="https://docs.pytorch.org/tutorials/intermediate/scaled_dot_product_attention_tutorial.html",
    ),
    "F13": Claim(
        "A query that may look at nothing gives zeros; in nn.MultiheadAttention, too.",
        "a mask leaves a query nothing to look at",
        "correctness",
        words=(
            "the output corresponding to fully masked rows in scaled_dot_product_attention will"
            ' be 0. For cases where nn.MHA does not employ the "fast-path", this will also '
            "apply."
        ),
        link="https://docs.pytorch.org/tutorials/intermediate/transformer_building_blocks.html",
    ),
    "F14": Claim(
        "nn.MultiheadAttention performs best with need_weights=False.",
        "the attention weights are thrown away",
        "speed",
        words=(
            "Set need_weights=False to use the optimized scaled_dot_product_attention and "
            "achieve the best performance for MHA."
        ),
        link="https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html",
    ),
    "F15": Claim(
        "TransformerEncoder is faster with nested tensors when the padding rate is high.",
        "texts of different lengths share a batch",
        "speed",
        words="This will improve the overall performance of TransformerEncoder when padding rate is high.",
        link="https://docs.pytorch.org/docs/stable/generated/torch.nn.TransformerEncoder.html",
    ),
    "F17": Claim(
        "Checkpoint activation functions to save memory.",
        "activations fill the memory",
        "memory",
        words="The example target layers are activation functions (e.g. ``ReLU``, ``Sigmoid``, ``Tanh``)",
        link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    "F18": Claim(
        "The reentrant checkpoint gives no gradients if no input requires them.",
        "the first layers are checkpointed",
        "correctness",
        words=(
            "At least one input and output must have ``requires_grad=True`` for the reentrant "
            "variant. If this condition is unmet, the checkpointed part of the model will not "
            "have gradients."
        ),
        link="https://docs.pytorch.org/docs/stable/checkpoint.html",
    ),
    "F19": Claim(
        "Most memory is needed in the optimiser's step; stepping inside of backward saves it.",
        "gradients are a large part of the memory",
        "memory",
        words="The peak memory usage is during the optimizer step!",
        link="https://docs.pytorch.org/tutorials/intermediate/optimizer_step_in_backward_tutorial.html",
    ),
    "F20": Claim(
        "On a CPU, save_on_cpu copies nothing.",
        "code that keeps activations on the CPU also runs without a GPU",
        "correctness",
        words="If the graph was already on CPU, no tensor copy is performed.",
        link="https://docs.pytorch.org/docs/stable/autograd.html",
    ),
    "F21": Claim(
        "Adding gradients up over parts equals one large batch.",
        "the wanted batch does not fit",
        "correctness",
        words=(
            "Gradient accumulation adds gradients over an effective batch of size "
            "`batch_per_iter * iters_to_accumulate`"
        ),
        link="https://docs.pytorch.org/docs/stable/notes/amp_examples.html",
    ),
    "F22": Claim(
        "A name keeps its tensor alive after the loop: delete it.",
        "a loop names large results",
        "memory",
        words=(
            "Here, `intermediate` remains live even while `h` is executing, because its scope "
            "extrudes past the end of the loop."
        ),
        link="https://docs.pytorch.org/docs/stable/notes/faq.html",
    ),
    "F23": Claim(
        "parameter.grad = None instead of zero_grad().",
        "gradients are cleared before each step",
        "speed",
        words="Use parameter.grad = None instead of model.zero_grad() or optimizer.zero_grad()",
        link="https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    "F24": Claim(
        "Expandable segments lose less of a GPU's memory to fragments.",
        "sizes change from step to step on a GPU",
        "memory",
        "cuda",
        words=(
            "This process does not create as many slivers of unusable memory, so it is more "
            "likely to succeed at finding this memory."
        ),
        link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    ),
    "F25": Claim(
        "Replaying a CUDA graph is faster than launching each operation again.",
        "many small kernels run on a GPU again and again",
        "speed",
        "cuda",
        words=(
            "Replaying a graph sacrifices the dynamic flexibility of typical eager execution in exchange "
            "for greatly reduced CPU overhead."
        ),
        link="https://docs.pytorch.org/docs/stable/notes/cuda.html",
    ),
    "F26": Claim(
        "vmap is faster than a for-loop.",
        "a function for one example is to run for many",
        "speed",
        words="In general, vectorization with vmap should be faster than running a function in a for-loop",
        link="https://docs.pytorch.org/tutorials/intermediate/ensembling.html",
    ),
    "F27": Claim(
        "vmap is about as fast as batching by hand.",
        "a function for one example is to run for many",
        "speed",
        at_least=0.8,
        words=(
            "vectorization with vmap should be faster than running a function in a for-loop and "
            "competitive with manual batching."
        ),
        link="https://docs.pytorch.org/tutorials/intermediate/ensembling.html",
    ),
    "F28": Claim(
        "An optimiser's foreach implementation is faster than its for-loop.",
        "you choose an implementation of an optimiser",
        "speed",
        words="For-looping is usually slower than our foreach implementations",
        link="https://docs.pytorch.org/docs/stable/optim.html",
    ),
    "F29": Claim(
        "Without a wish of yours, an optimiser takes foreach.",
        "an optimiser is made without arguments",
        "correctness",
        words="So when applicable, we default to foreach over for-loop.",
        link="https://docs.pytorch.org/docs/stable/optim.html",
    ),
    "F30": Claim(
        "inference_mode is faster than no_grad, for nothing.",
        "no gradients are needed",
        "speed",
        words="If it works out of the box for your use case it's a free performance win.",
        link="https://docs.pytorch.org/docs/stable/notes/autograd.html",
    ),
    "F31": Claim(
        "vmap calls its function once.",
        "a function under vmap counts or prints",
        "correctness",
        words="executes `f` a single time, so all side effects only happen once.",
        link="https://docs.pytorch.org/docs/stable/func.ux_limitations.html",
    ),
    "F32": Claim(
        "Rewrite parts in C++ and fuse operations: a definite method of speeding things up.",
        "a part of a program is slow",
        "speed",
        "cpu",
        words=(
            "A definite method of speeding things up is therefore to rewrite parts in C++ (or CUDA) and fuse "
            "particular groups of operations."
        ),
        link="https://docs.pytorch.org/tutorials/advanced/cpp_extension.html",
    ),
    "F33": Claim(
        "What built-in operators can express is a Python function, and no custom operator.",
        "built-in operators can express what you compute",
        "speed",
        words=(
            "If your operation is expressible as a composition of built-in PyTorch operators then please "
            "write it as a Python function and call it instead of creating a custom operator."
        ),
        link="https://docs.pytorch.org/tutorials/advanced/custom_ops_landing_page.html",
    ),
    "F34": Claim(
        "A kernel that is given a data pointer does not compose with autograd, torch.compile and vmap.",
        "you call a kernel of your own with data_ptr()",
        "correctness",
        words=(
            "It is possible to use a C/C++/CUDA kernel by grabbing a Tensor's data pointer and passing it to "
            "a pybind'ed kernel. However, this approach doesn't compose with PyTorch subsystems like "
            "autograd, torch.compile, vmap, and more."
        ),
        link="https://docs.pytorch.org/tutorials/advanced/custom_ops_landing_page.html",
    ),
    "F35": Claim(
        "opcheck finds an operator that hides which argument it writes to.",
        "you test an operator of your own",
        "correctness",
        words="opcheck would error out if we forgot to add the output to mutates_args, for example.",
        link="https://docs.pytorch.org/tutorials/advanced/python_custom_ops.html",
    ),
    "F36": Claim(
        "load_inline starts sooner with no_implicit_headers and the headers that you need.",
        "you wait for load_inline",
        "speed",
        words=(
            "Use this option to improve cold start times when you already include the necessary headers in "
            "your source code."
        ),
        link="https://docs.pytorch.org/docs/stable/cpp_extension.html",
    ),
    "F37": Claim(
        "A block of Triton has a power of two of elements.",
        "you choose the size of a tile",
        "correctness",
        words="each block must have a power-of-two number of elements",
        link="https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html",
    ),
    "F38": Claim(
        "Triton's interpreter does not support bfloat16.",
        "you test a kernel with the interpreter",
        "correctness",
        words="It does not support operations on bfloat16 numeric types.",
        link="https://triton-lang.org/main/programming-guide/chapter-3/debugging.html",
    ),
    "F39": Claim(
        "Triton's interpreter cannot load from a pointer that was loaded.",
        "a kernel gets a tensor of pointers",
        "correctness",
        words="It does not support indirect memory access patterns",
        link="https://triton-lang.org/main/programming-guide/chapter-3/debugging.html",
    ),
    "F40": Claim(
        "A fused softmax in Triton is significantly faster than PyTorch's own.",
        "rows are short enough for the GPU's fast memory",
        "speed",
        "cuda",
        words=(
            "you will write a fused softmax operation that is significantly faster than PyTorch's native op "
            "for a particular class of matrices: those whose rows can fit in the GPU's SRAM."
        ),
        link="https://triton-lang.org/main/getting-started/tutorials/02-fused-softmax.html",
    ),
    "F41": Claim(
        "torch.compile makes PyTorch code run faster.",
        "the same code is called often",
        "speed",
        words=(
            "torch.compile makes PyTorch code run faster by JIT-compiling PyTorch code into "
            "optimized kernels, while requiring minimal code changes."
        ),
        link="https://docs.pytorch.org/tutorials/intermediate/torch_compile_tutorial.html",
    ),
    "F42": Claim(
        "Remove graph breaks where the speed-up does not come.",
        "a compiled function has graph breaks",
        "speed",
        words=(
            "If you're not seeing the expected speedups, we recommend checking for graph breaks"
            " and removing them."
        ),
        link=(
            "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/compile/programming_"
            "model.graph_breaks_index.html"
        ),
    ),
    "F43": Claim(
        "vmap needs less memory with a chunk_size.",
        "vmap needs too much memory",
        "memory",
        words=("If you run into memory issues computing the vmap, please try a non-None chunk_size."),
        link="https://docs.pytorch.org/docs/stable/generated/torch.func.vmap.html",
    ),
}
