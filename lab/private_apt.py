"""A private apt, with all its state in one folder, that fetches packages of Debian sid."""

from __future__ import annotations

from pathlib import Path

from lab.debian_mirror import MirrorEntry


def private_apt(source: MirrorEntry, downloads: Path) -> list[str]:
    """Set up an apt in the folder `downloads`, and return how its commands begin: `apt-get` with its options.

    The caller adds a verb, for example `update`. This apt knows only the suite sid of the archive `source`.
    """
    for name in ("lists/partial", "cache/archives/partial", "none"):
        (downloads / name).mkdir(parents=True, exist_ok=True)
    (downloads / "status").touch()
    signed = f" [signed-by={source.signed_by}]" if source.signed_by else ""
    (downloads / "sources.list").write_text(f"deb{signed} {source.uri} sid main\n")
    configuration = downloads / "apt.conf"
    configuration.write_text(_APT.format(folder=downloads))
    return ["apt-get", "-c", str(configuration), "-y", "-q"]


# apt reads this file after the system's own configuration, so the system's proxies stay. The system's clean-up hooks,
# pins and foreign architectures do not belong to this private apt. `#clear` is apt's own word (apt.conf(5)).
_APT = """\
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::Architectures;
#clear DPkg::Post-Invoke;
APT::Default-Release "";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::Cache "{folder}/cache";
Dir::Etc::preferences "{folder}/none/preferences";
Dir::Etc::preferencesparts "{folder}/none";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "{folder}/none";
Dir::State::lists "{folder}/lists";
Dir::State::status "{folder}/status";
"""
