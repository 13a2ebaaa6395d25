"""The layout of the structures that generated code and Python share.

control block   lines of 128 bytes, each written by few: LOCK; BARRIER (generation, its sleepers, threads ARRIVED);
                PENDING workers of the launch; FINISHED launches and their sleepers; SPINS, the pauses before
                yielding, and SIZE, the number of threads; then from MAILBOXES on one line for each thread
mailbox         ticket (an int32), its sleepers, thread block to run (0 asks the worker to end)
launch block    words THREADS, CONTROL, STATUS, REQUEST, STOP, COMMITTED, COMPLETED, LOCKS, LOCK_COUNT, OWNER (the
                Python thread whose scratch it uses, or -1), START; then the thread blocks, one line each, from the
                second line
start table     what START points to: words INSIDE (the list of that name in ``host.calls``), AT_ONCE (the function that
                runs the program with the GIL held, or 0), SLOT_COUNT, then from SLOTS the slots that a start writes
thread block    the eight words of the kernel ABI, the last pointing to the launch block; RECORDS, DELAY, RANDOM, WATCH,
                POSITION, the rows BEGIN to END of the window
state lock      int32 GATE, HOLDERS (-1: a writer, else the number of readers), EPOCH (odd while there is a writer),
                each followed by its sleepers; int64 VERSION, WRITES
lock entry      a state lock that a launch takes: words ADDRESS, EXCLUSIVE, EXPECTED_VERSION, EXPECTED_WRITES or ANY

How a run is stopped: any thread may set REQUEST. The first thread, between two records, copies it to STOP unless the
run is COMMITTED, and the others obey STOP; a fault sets both. So every thread WATCHes one word. A run that is not
stopped and has no fault counts in COMPLETED.
"""

from __future__ import annotations

from typing import Final

LINE: Final = 128  # bytes; two cache lines, because processors fetch them in pairs
LOCK, BARRIER, PENDING, FINISHED, SPINS, MAILBOXES = (LINE * n for n in range(6))
ARRIVED: Final = BARRIER + 8
SIZE: Final = SPINS + 8
MAIL_THREAD: Final = 8

# words of a launch block
THREADS, CONTROL, STATUS, REQUEST, STOP, COMMITTED, COMPLETED, LOCKS, LOCK_COUNT, OWNER, START = range(11)

# words of a start table
INSIDE, AT_ONCE, SLOT_COUNT, SLOTS = range(4)

# words of a thread block
BASES, SCRATCH, SCRATCH_BYTES, NUMBER, COUNT, TEAM, FAULT, LAUNCH, RECORDS, DELAY, RANDOM, WATCH, POSITION = range(13)
BEGIN, END = 13, 14  # of the window

# bytes of a state lock
GATE, HOLDERS, EPOCH, VERSION, WRITES = range(0, 40, 8)

# words of a lock entry
ADDRESS, EXCLUSIVE, EXPECTED_VERSION, EXPECTED_WRITES = range(4)
ANY: Final = -1

THREAD_SCRATCH: Final = 3 << 20  # least bytes of scratch of every thread

# requests, and the status of a run that was stopped by one
CANCELLED: Final = -1
INTERRUPTED: Final = -2  # by a signal

# the status of a launch that did not run
STALE: Final = -3  # a state lock has another version, or other writes, than the launch expects
BUSY: Final = -4  # a state lock is held, and the launch was not to wait
TOO_FEW: Final = -5  # the team has fewer threads than the program

LATER: Final = -7  # what a start returns that has not run the program: ``run`` is to be called
SINGULAR: Final = -8  # the status of a run that met a singular matrix
HOST: Final = -6  # the status of a run in which a function of the host raised an error
