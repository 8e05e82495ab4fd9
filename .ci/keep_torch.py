"""Print the versions of torch and its companions in this environment, as constraints that keep them."""

from importlib.metadata import PackageNotFoundError, version

for name in ("torch", "torchvision", "torchaudio", "triton"):
    try:
        print(f"{name}=={version(name)}")
    except PackageNotFoundError:
        continue
