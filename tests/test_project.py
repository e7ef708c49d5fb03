"""What the files about the project say agrees with the project."""

import re
import sys
import tomllib

import pytest
import yaml

from book_tools.lock import split_lock
from book_tools.toc import ROOT

PACKAGES = sorted(
    path.parent.name for path in ROOT.glob("transformer_lib/*/__init__.py")
)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name):
    return {package.lower(): version for package, version in PINNED.findall(text(name))}


def test_one_version():
    [version] = re.findall(r'^version = "(.*)"', text("pyproject.toml"), re.MULTILINE)
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    assert (
        re.search(r"^## (.*)", text("CHANGELOG.md"), re.MULTILINE).group(1) == version
    )


def test_every_requirement_is_pinned():
    lines = [line.partition("#")[0] for line in text("requirements.txt").splitlines()]
    assert not [line for line in lines if line.strip() and not PINNED.match(line)]


@pytest.mark.parametrize("name", ["requirements.lock", "nvidia.lock", "cpu.lock"])
def test_what_is_installed_is_known_by_its_hash(name):
    packages = split_lock(text(name))
    assert packages
    for _, block in packages:
        first, *hashes = block.splitlines()
        assert re.match(r"[\w.-]+==\S+( ; .+)? \\$", first), first
        assert all(re.match(r"    --hash=sha256:[0-9a-f]{64}\b", h) for h in hashes)
        assert hashes
    assert "://" not in text(name) and "--index" not in text(name)


def test_the_lock_holds_the_pins_of_the_requirements():
    locked = pins("requirements.lock")
    assert pins("requirements.txt").items() <= locked.items(), "run make lock"
    assert not set(locked) & set(pins("nvidia.lock"))
    [cpu] = pins("cpu.lock").values()
    assert cpu == locked["torch"] + "+cpu"


def test_the_library_gives_lower_bounds_that_the_pins_satisfy():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    pinned = pins("requirements.txt")
    for dependency in project["dependencies"]:
        name, bound = dependency.split(">=")
        assert [int(part) for part in bound.split(".")] <= [
            int(part) for part in pinned[name].split(".")[:3]
        ]


def test_the_packages_installed_here_are_the_pinned_ones():
    from importlib.metadata import version

    found = {name: version(name).partition("+")[0] for name in pins("requirements.txt")}
    assert found == pins("requirements.txt"), f"run make book; this is {sys.prefix}"


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_of_the_library_are_on_the_map(package):
    assert re.search(rf"^  {package}/ ", text("README.md"), re.MULTILINE)


def test_make_targets_that_the_pages_name_exist():
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        named = re.findall(r"`make ([a-z-]+)|^make ([a-z-]+)", text(name), re.MULTILINE)
        assert {"".join(groups) for groups in named} <= targets, name


def unpinned(workflow):
    """The actions that are not pinned by a full commit hash, with version beside."""
    pinned = re.compile(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    uses = re.findall(r"^[ -]*uses: *(.*)$", workflow, re.MULTILINE)
    return [action for action in uses if not pinned.fullmatch(action)]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_their_commit(path):
    assert unpinned(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "action", ["actions/checkout@v4", f"a/b@{'0' * 39} # v1.2.3", f"a/b@{'0' * 40}"]
)
def test_an_action_that_can_change_is_seen(action):
    workflow = WORKFLOWS[0].read_text(encoding="utf-8")
    assert unpinned(f"{workflow}\n      - uses: {action}") == [action]
    assert unpinned(f"{workflow}\n        uses: {action}\n") == [action]


def test_only_jobs_that_publish_or_tell_may_write():
    may = {}
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert workflow["permissions"] == {"contents": "read"}, path
        for name, job in workflow["jobs"].items():
            if "permissions" in job:
                may[path.stem, name] = job["permissions"]
    assert may == {
        ("pages", "deploy"): {"pages": "write", "id-token": "write"},
        ("next", "tell"): {"issues": "write"},
        ("colab", "propose"): {"contents": "write", "pull-requests": "write"},
    }
    installing = yaml.safe_load(WORKFLOWS[0].with_name("next.yml").read_text())
    told = installing["jobs"]["tell"]["steps"]
    assert all("pip" not in step.get("run", "") for step in told)


def test_the_image_of_colab_is_named_by_its_digest():
    colab = next(path for path in WORKFLOWS if path.name == "colab.yml").read_text()
    jobs = yaml.safe_load(colab)["jobs"]
    assert re.findall(r'"\$IMAGE[^"]*"', colab) == [
        '"$IMAGE:latest"',
        '"$IMAGE@$DIGEST"',
    ]
    asked = [step.get("run", "") for step in jobs["find"]["steps"]]
    assert '"$IMAGE:latest"' in "".join(asked)  # asked for its digest, never run
    assert not [step for step in asked if "docker run" in step]
    lines = text(".github/colab-image.txt").splitlines()
    digests = [line for line in lines if not line.startswith("#")]
    assert len(digests) <= 1
    assert all(re.fullmatch("sha256:[0-9a-f]{64}", digest) for digest in digests)
