"""The cluster that scripts/up started, for the benchmarks beside this file."""
import os
import re
import secrets
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DATA = os.path.join(ROOT, ".zonekeeper", "dev")


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(command[:4]), done.stderr.strip() or done.stdout.strip()))
    return done.stdout


def environment(container, *limits):
    """The variables that scripts/up wrote, with an own container, limits, a user and tokens."""
    path = os.path.join(DATA, "env")
    if not os.path.exists(path):
        sys.exit("no cluster is set up here; run scripts/up first")
    text = open(path).read()
    env = dict(os.environ, ZONEKEEPER_CONTAINER=container)
    env.update((name, value) for name, value in re.findall(r"^export (ZONEKEEPER_\w+)='(.*)'$", text, re.M)
               if name != "ZONEKEEPER_CONTAINER")
    env["PATH"] = "%s:%s" % (re.search(r"PATH='([^']*)':", text).group(1), env["PATH"])
    for name in ("API_TOKEN", "WEB_AUTH_TOKEN"):
        env.pop("ZONEKEEPER_" + name, None)
    for command in (("container", "create", container), ("user", "create", "benchmarks")):
        made = subprocess.run(
            ("zonekeeper",) + command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=env)
        if made.returncode != 0 and "EXISTS" not in made.stderr:
            sys.exit(made.stderr)
    run("zonekeeper", "limits", "set", "requestsPerSecond=1000000", "requestsPerSecondMax=1000000", *limits, env=env)
    with tempfile.TemporaryDirectory() as folder:
        for kind, more in (("api", ()), ("session", ("--user", "benchmarks", "--lifetime", "1d"))):
            file = os.path.join(folder, kind)
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
                f.write(secrets.token_hex(32))
            run("zonekeeper", "token", "create", "--" + kind, *more, "--label", "benchmarks", "--secret-file", file,
                env=env)
            env["ZONEKEEPER_" + ("API_TOKEN" if kind == "api" else "WEB_AUTH_TOKEN")] = open(file).read()
    return env
