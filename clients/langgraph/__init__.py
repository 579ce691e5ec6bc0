"""LangGraph's long-term memory kept in Memory Banks: `MemoryBankStore`, for any graph compiled with `store=`."""

from clients.langgraph.errors import Conflict, Refused, StoreError, Unavailable
from clients.langgraph.items import FoundItem, StoredItem
from clients.langgraph.store import MemoryBankStore

__all__ = ["Conflict", "FoundItem", "MemoryBankStore", "Refused", "StoreError", "StoredItem", "Unavailable"]
