-- The names of a plain lock: the first part of its script.
-- KEYS[1]  the lock's key
-- ARGV     as of the parts behind it
-- returns  nothing
local key = KEYS[1]
local queue = 'quorumlock-queue:' .. key
