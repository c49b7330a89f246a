"""Check a text in turns, so that what others ask is done between them."""

import time
from dataclasses import replace

from local_rag.serving.requests import Caller, VerifyRequest
from local_rag.serving.service import Service
from local_rag.verification.verdicts import Verification

MOST_SECONDS = 300.0  # for which a client waits


async def verified(
    service: Service, request: VerifyRequest, caller: Caller, *, seconds: float = MOST_SECONDS
) -> Verification:
    """Return a whole text checked, or what was checked of it within some seconds."""
    ends, found = time.monotonic() + seconds, Verification(request.text, (), 1)
    while found.left_out and time.monotonic() < ends:
        turn = await service.verify(replace(request, first=len(found.statements)), caller).outcome()
        found = replace(turn, statements=(*found.statements, *turn.statements))
        if not turn.statements:
            break
    return found
