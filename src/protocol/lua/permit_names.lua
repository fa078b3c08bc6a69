-- The names of a permit of a semaphore: the first part of its script.
-- Each slot has the key of a plain lock, the name of the semaphore, "#" and a number from 0 on. All wait in one queue.
-- KEYS[1]  the key of a slot: of the one to take or to release, otherwise of any
-- ARGV     as of the parts behind it
-- returns  nothing
local key = KEYS[1]
local name = string.match(key, '^(.*)#%d+$') or key
local queue = 'quorumlock-queue:quorumlock-permits:' .. name
