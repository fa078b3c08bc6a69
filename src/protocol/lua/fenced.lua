-- A fenced lock: what it is asked to do, between fence_key.lua and queue.lua. Each verb compares the owner of the key.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- ARGV[1]  the verb: acquire, extend, raise, or one of queue.lua
--   acquire  takes the lock if it is free, whichever calls wait.
--   [2] the owner token; a space and the label of the holder, if it has one  [3] acquire, extend: for how long to hold
--   the lock from now on, in milliseconds; raise: the fence to be had at least  [4] for how long the key is kept from
--   now on, in milliseconds  [5] acquire: the fence to be had at least, a clock in microseconds; counts up to a minute
--   after this server's clock
--   take: [8] as [4], [9] as [5] of acquire; release: [5] as [4]
-- returns  acquire, take: the fence as a bulk string
--          otherwise 1: done, 0: it is free (extend: it may be taken again), -1: another token holds it
--          -2: the value cannot be read (release: 0), -3: the fence is too far ahead of the clock (acquire, raise,
--          take)
--          acquire: -4 - n: another token holds it, through the nth millisecond from now
local key, verb = KEYS[1], ARGV[1]
local queue = 'quorumlock-queue:' .. key
local ours = fence and verb ~= 'leave' and owner == string.sub(ARGV[2], 1, 40)
if verb == 'release' then
  if ours then
    local stored = release(ARGV[5])
    if stored.err then
      return stored
    end
  end
  if (ARGV[3] or '') == '' and redis.pcall('EXISTS', queue) == 0 then
    return ours and 1 or 0
  end
elseif not fence and verb ~= 'leave' then
  return -2
end
local time = redis.pcall('TIME')
if time.err then
  return verb == 'release' and (ours and 1 or 0) or time
end
local clock = time[1] * 1000000 + time[2]
local now = math.floor(clock / 1000)
local left = fence and owner ~= '' and math.max(deadline - now + 1, 0) or 0
if verb == 'acquire' then
  if left > 0 then
    return ours and string.format('%.0f', fence) or -3 - left
  end
  return acquire(clock, ARGV[2], ARGV[3], ARGV[5], ARGV[4])
elseif verb == 'raise' or verb == 'extend' then
  if not ours then
    return owner == '' and 0 or (verb == 'raise' or left > 0) and -1 or 0
  end
  if verb == 'raise' then
    fence = math.max(fence, tonumber(ARGV[3]))
    if is_ahead(clock) then
      return -3
    end
  elseif left == 0 then
    return 0
  else
    deadline = now + ARGV[3]
  end
  local stored = rewrite(ARGV[4])
  return stored.err and stored or 1
end
ours = ours and (verb == 'release' or left > 0)
local asked, holder = 'f', left > 0 and owner or ''
local function fits(_, rank)
  return fence and left == 0 and rank == 0
end
local function has_key()
  return string.format('%.0f', fence)
end
local function grant()
  return acquire(clock, ARGV[2], ARGV[3], ARGV[9], ARGV[8])
end
local function held_for()
  return left
end
