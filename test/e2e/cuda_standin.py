#!/usr/bin/python3
"""The rules that the stand-ins for NVIDIA's libraries (test/cuda/standin) hold a program to, each broken once."""
import ctypes
import json
import os
import resource
import signal
import threading

from standin import STANDINS, require_standins
from support import MODELS, check, run, workspace

Pointer, Size, Long = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int64
TO_DEVICE, TO_HOST = 1, 2
OK, INVALID, OUT_OF_MEMORY, NOT_ELF, BAD_TEXT = 0, 1, 2, 200, 218
NOT_CAPTURED, INVALIDATED, UNJOINED, ISOLATED, CAPTURED = 900, 901, 904, 905, 907


class Runtime:
    def __init__(self):
        self.library = ctypes.CDLL(str(STANDINS / "libcudart.so.13"))
        self.origin, self.other, self.outside = (self.made("StreamCreateWithPriority", 1, 0) for _ in range(3))
        self.forked, self.joined = (self.made("EventCreateWithFlags", 2) for _ in range(2))
        self.device, self.host = self.made("Malloc", Size(64)), self.made("HostAlloc", Size(64), 0)
        self.pageable = ctypes.create_string_buffer(64)

    def call(self, name, *arguments):
        return getattr(self.library, "cuda" + name)(*arguments)

    def made(self, name, *arguments):
        made = Pointer()
        self.expect(OK, name, ctypes.byref(made), *arguments)
        return made

    def expect(self, wanted, name, *arguments):
        got = self.call(name, *arguments)
        check(got == wanted, f"{name} gives {got}, not {wanted}")

    def first(self):
        """What is at the begin of the device's memory."""
        self.expect(OK, "Memcpy", self.pageable, self.device, Size(4), TO_HOST)
        return self.pageable.raw[:4]

    def captured(self, end, steps):
        """A capture in which `steps` are called, each with what it is to give."""
        graph = Pointer()
        self.expect(OK, "StreamBeginCapture", self.origin, 1)
        for wanted, name, *arguments in steps:
            self.expect(wanted, name, *arguments)
        self.expect(end, "StreamEndCapture", self.origin, ctypes.byref(graph))
        return graph


def memory(cuda):
    check(cuda.first() == b"\xff" * 4, "memory does not start as NaN")
    cuda.expect(INVALID, "Memcpy", cuda.device, cuda.pageable, Size(65), TO_DEVICE)
    cuda.expect(INVALID, "Memcpy", cuda.pageable, cuda.pageable, Size(4), TO_DEVICE)
    cuda.expect(OUT_OF_MEMORY, "Malloc", ctypes.byref(Pointer()), Size(1 << 40))


def captures(cuda):
    copy = (OK, "MemcpyAsync", cuda.device, cuda.host, Size(4), TO_DEVICE, cuda.other)
    fork = [(OK, "EventRecord", cuda.forked, cuda.origin), (OK, "StreamWaitEvent", cuda.other, cuda.forked, 0)]
    join = [(OK, "EventRecord", cuda.joined, cuda.other), (OK, "StreamWaitEvent", cuda.origin, cuda.joined, 0)]
    cuda.expect(OK, "EventRecord", cuda.forked, cuda.other)
    cuda.captured(INVALIDATED, [(ISOLATED, "StreamWaitEvent", cuda.origin, cuda.forked, 0)])
    cuda.captured(INVALIDATED, [(NOT_CAPTURED, "Malloc", ctypes.byref(Pointer()), Size(4))])
    cuda.captured(INVALIDATED, [(NOT_CAPTURED, "DeviceSynchronize")])
    cuda.captured(INVALIDATED, [(NOT_CAPTURED, "MemcpyAsync", cuda.device, cuda.pageable, Size(4), TO_DEVICE, cuda.origin)])
    cuda.captured(UNJOINED, [*fork, copy])
    graph = cuda.captured(OK, [*fork, copy, *join])
    cuda.expect(CAPTURED, "EventSynchronize", cuda.forked)
    cuda.expect(CAPTURED, "StreamWaitEvent", cuda.outside, cuda.forked, 0)

    # A graph reads what is there when it runs, which is when somebody waits.
    executable = cuda.made("GraphInstantiate", graph, ctypes.c_ulonglong(0))
    cuda.expect(OK, "GraphLaunch", executable, cuda.origin)
    ctypes.memmove(cuda.host, b"late", 4)
    check(cuda.first() == b"\xff" * 4, "a launch ran before anybody waited")
    cuda.expect(OK, "DeviceSynchronize")
    check(cuda.first() == b"late", "a launch did not run")


class UniqueId(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_char * 128)]


def communicators(cuda):
    """Graphs are gone before the communicator whose work they have, and what is registered with it: who destroys it is ended, who
    aborts it waits. Sums are of what is registered."""
    nccl, id, registered = ctypes.CDLL(str(STANDINS / "libnccl.so.2")), UniqueId(), Pointer()
    check(nccl.ncclGetUniqueId(ctypes.byref(id)) == OK, "an id of ranks")

    def joined():
        made = Pointer()
        check(nccl.ncclCommInitRank(ctypes.byref(made), 1, id, 0) == OK, "one rank")
        check(nccl.ncclCommRegister(made, cuda.device, Size(4), ctypes.byref(registered)) == OK, "memory of sums")
        return made

    def ended(body):
        """The exit code of a process that does it."""
        process = os.fork()
        if process == 0:
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os._exit(body())
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

    def destroyed():
        return nccl.ncclCommDeregister(communicator, registered) or nccl.ncclCommDestroy(communicator)

    def sum_of(count):
        return nccl.ncclAllReduce(cuda.device, cuda.device, Size(count), 7, 0, communicator, cuda.origin)

    def captured():
        cuda.expect(OK, "StreamBeginCapture", cuda.origin, 1)
        check(sum_of(1) == OK, "a sum of floats")
        graph = Pointer()
        cuda.expect(OK, "StreamEndCapture", cuda.origin, ctypes.byref(graph))
        executable = cuda.made("GraphInstantiate", graph, ctypes.c_ulonglong(0))
        cuda.expect(OK, "GraphDestroy", graph)
        return executable

    communicator = joined()
    check(sum_of(1) == OK, "a sum on a stream")
    check(ended(lambda: sum_of(2)) == -signal.SIGABRT, "a sum of memory that is not registered")
    check(ended(lambda: nccl.ncclCommDestroy(communicator)) == -signal.SIGABRT, "a communicator was destroyed before its memory")
    check(ended(destroyed) == 0, "work of a stream keeps a communicator")
    executable = captured()
    check(ended(destroyed) == -signal.SIGABRT, "a communicator was destroyed before its graph")
    aborting = threading.Thread(target=nccl.ncclCommAbort, args=[communicator], daemon=True)
    aborting.start()
    aborting.join(0.3)
    check(aborting.is_alive(), "aborting does not wait for graphs")
    cuda.expect(OK, "GraphExecDestroy", executable)
    aborting.join(10)
    check(not aborting.is_alive(), "aborting waits though there are no graphs")
    check(ended(destroyed) == 0, "a communicator without graphs cannot be destroyed")


def code(cuda):
    for wanted, text in (BAD_TEXT, b".version 8.0\nnonsense"), (NOT_ELF, b"\x7fELF"):
        cuda.expect(wanted, "LibraryLoadData", ctypes.byref(Pointer()), text, None, None, 0, None, None, 0)


def loads(cudnn, plan):
    """Whether a plan's text is taken for the device that is there."""
    text, device, loaded, zero = json.dumps(plan).encode(), Pointer(), Pointer(), ctypes.c_int32(0)
    cudnn.cudnnBackendCreateDescriptor(38, ctypes.byref(device))
    cudnn.cudnnBackendSetAttribute(device, 2700, 23, Long(1), ctypes.byref(zero))
    check(cudnn.cudnnBackendFinalize(device) == OK, "the device's description")
    cudnn.cudnnBackendCreateDescriptor(5, ctypes.byref(loaded))
    cudnn.cudnnBackendSetAttribute(loaded, 405, 24, Long(len(text)), text)
    cudnn.cudnnBackendSetAttribute(loaded, 407, 15, Long(1), ctypes.byref(device))
    return cudnn.cudnnBackendFinalize(loaded) == OK


def plans(home):
    cudnn = ctypes.CDLL(str(STANDINS / "libcudnn.so.9"))
    run("dlc", "compile", MODELS / "mnist_cnn.dl", "--target=cuda:h200", "-o", home / "m.dlx")
    file = (home / "m.dlx").read_bytes()
    begin = file.index(b'{"cudnnVersion"')
    plan = json.loads(file[begin:file.index(b"\0", begin)])
    check(loads(cudnn, plan), "a plan for this device")
    for field in "deviceVer", "multiProcessorCount", "driverVer":
        check(not loads(cudnn, {**plan, "GPUProfile": {**plan["GPUProfile"], field: 1}}), f"a plan for another {field}")
    check(not loads(cudnn, {**plan, "cudnnVersion": 91800}), "a plan of another version")


def main():
    require_standins()
    cuda = Runtime()
    for test in memory, captures, code, communicators:
        test(cuda)
    plans(workspace())


main()
