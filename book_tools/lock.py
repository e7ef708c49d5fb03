"""Write down what is installed: `make lock`, after a change of requirements.txt.

requirements.lock    every package on every system, with the hashes of its files
nvidia.lock          what PyTorch's build for NVIDIA cards needs besides
cpu.lock             PyTorch's build without them, which is not on the public index; it
                     is installed where pip finds one

uv resolves requirements.txt for all systems at once. Versions stay as they are unless a
requirement asks for another; `python -m book_tools.lock --upgrade` takes the newest.
"""

import re
import subprocess
import sys

from book_tools.toc import ROOT

LOCK, NVIDIA, CPU = (
    ROOT / f"{name}.lock" for name in ("requirements", "nvidia", "cpu")
)
OF_NVIDIA = ("nvidia-", "cuda-", "triton")

# The build for Linux and Python 3.11.
CPU_BUILD = "torch=={version}+cpu \\\n    --hash=sha256:{hash}\n"
CPU_HASH = {
    "2.13.0": "6746dbcbeb526eb61330b76b41ff1b4eb848951103a892eeb080dfa2b264667b",
}

HEADER = "# {text}\n# Written by: make lock\n"


def split_lock(text: str) -> list[tuple[str, str]]:
    """Take a lock apart into (name, lines) of each package."""
    blocks = re.split(r"^(?=[A-Za-z0-9])", text, flags=re.MULTILINE)
    return [
        (re.match(r"[\w.-]+", block)[0], block.rstrip() + "\n")
        for block in blocks
        if block[:1].isalnum()
    ]


def main(arguments: list[str]) -> None:
    """Resolve, and write the files."""
    known = ROOT / "_build/known.lock"
    known.parent.mkdir(exist_ok=True)
    kept = [path.read_text() for path in (LOCK, NVIDIA) if path.exists()]
    known.write_text("".join(kept))
    options = "--universal --generate-hashes --no-annotate --no-header --quiet"
    version = ["--python-version", "3.11"]
    files = [str(ROOT / "requirements.txt"), "--output-file", str(known)]
    uv = [sys.executable, "-m", "uv", "pip", "compile"]
    subprocess.run([*uv, *options.split(), *version, *files, *arguments], check=True)
    packages = split_lock(known.read_text())
    for path, nvidia, text in (
        (LOCK, False, "Every package behind the stored outputs and pages."),
        (NVIDIA, True, "What PyTorch's build for NVIDIA cards needs besides."),
    ):
        blocks = [
            block for name, block in packages if name.startswith(OF_NVIDIA) == nvidia
        ]
        path.write_text(HEADER.format(text=text) + "".join(blocks))
        sys.stdout.write(f"{path.name}: {len(blocks)} packages\n")
    version = re.search(r"^torch==([\d.]+)", known.read_text(), re.MULTILINE)[1]
    if version not in CPU_HASH:
        sys.exit(f"no hash of a CPU build of torch {version} is known: set CPU_HASH")
    build = CPU_BUILD.format(version=version, hash=CPU_HASH[version])
    CPU.write_text(HEADER.format(text="PyTorch without CUDA, for Linux.") + build)


if __name__ == "__main__":
    main(sys.argv[1:])
