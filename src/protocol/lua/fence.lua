-- A fenced lock: what stands in fence_key.lua, and what it is asked to do. Each call compares the owner of the key.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- ARGV[1]  what to do: acquire, extend, raise or release
-- ARGV[2]  the owner token; a space and the label of the holder, if it has one
-- ARGV[3]  how long the key is kept from now on, in milliseconds
-- ARGV[4]  acquire, extend: how long it is to be held from now on, in milliseconds; raise: the fence to be had at
--          least; release: what the name of the channel begins with on which waiters listen, the key being the rest, or
--          nothing: no hint is published
-- ARGV[5]  acquire: the fence to be had at least, a clock in microseconds; counts up to a minute after this server's
--          clock; release: the hint
-- returns  acquire: the fence as a bulk string; otherwise 1: done (release: 2 when publishing is denied, 2 and the
--          number of subscribers)
--          0: it is free (extend: it may be taken again), -1: another token holds it, -2: the value cannot be read,
--          -3: the fence is too far ahead of the clock (acquire, raise),
--          -4 - n: another token holds it (acquire), through the nth millisecond from now
if not fence then
  return -2
end
local what, token = ARGV[1], string.sub(ARGV[2], 1, 40)
local ours = owner == token
if what == 'release' then
  if not ours then
    return owner == '' and 0 or -1
  end
  local stored = release(ARGV[3])
  if stored.err then
    return stored
  end
  if not ARGV[4] then
    return 1
  end
  local heard = redis.pcall('PUBLISH', ARGV[4] .. KEYS[1], ARGV[5])
  if type(heard) == 'table' then
    return 2
  end
  return heard > 0 and 2 + heard or 1
end
local time = redis.pcall('TIME')
if time.err then
  return time
end
local clock = time[1] * 1000000 + time[2]
if what == 'raise' then
  if not ours then
    return owner == '' and 0 or -1
  end
  fence = math.max(fence, tonumber(ARGV[4]))
  if is_ahead(clock) then
    return -3
  end
else
  local now = math.floor(clock / 1000)
  local is_held = owner ~= '' and deadline >= now
  if is_held and not ours then
    return what == 'acquire' and now - deadline - 4 or -1
  end
  if what == 'acquire' then
    return is_held and string.format('%.0f', fence) or acquire(clock, ARGV[2], ARGV[4], ARGV[5], ARGV[3])
  end
  if not is_held then
    return 0
  end
  deadline = now + ARGV[4]
end
local stored = rewrite(ARGV[3])
return stored.err and stored or 1
