// The submodule of `import os.log`.
