-- A fenced lock that is fair: the lock's key is that of a fenced lock, and a queue stands beside it. This is the part
-- of the script between fence_key.lua and queue.lua, and ends with what the latter needs.
-- Each call writes at most one of the two keys: a restart cannot lose half of it.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- KEYS[2]  the queue's key
-- ARGV[1]  what to do: take, leave or release. They do and take what they do in fair.lua, and beside that:
-- take:
--   ARGV[9]  how long the lock's key is kept from now on, in milliseconds
--   ARGV[10] the fence to be had at least, as in fence.lua
--   returns  as in fair.lua, but for a key that is set, or was with this token, the fence as a bulk string; -2: what
--            stands under either key cannot be read; -3: the fence is too far ahead of the clock
-- release:
--   ARGV[5]  how long the lock's key is kept from now on, in milliseconds
--   ARGV[6]  as ARGV[5] in fair.lua
local what = ARGV[1]
local ours = fence and owner == string.sub(ARGV[2], 1, 40)
if what == 'release' then
  if not ours then
    return 0
  end
  local stored = release(ARGV[5])
  if stored.err then
    return stored
  end
  if ARGV[3] == '' then
    return 1
  end
elseif what == 'take' and not fence then
  return -2
end
local time = redis.pcall('TIME')
if time.err then
  return what == 'release' and 1 or time
end
local micros = time[1] * 1000000 + time[2]
local left = fence and owner ~= '' and deadline - math.floor(micros / 1000) + 1 or 0
if what == 'take' and ours and left > 0 then
  return string.format('%.0f', fence)
end
local is_free, undoes, channel, hint = fence and left <= 0, ARGV[6], ARGV[3], ARGV[4]
if what == 'take' then
  channel, hint = ARGV[7], ARGV[8]
end
local function held_for()
  return left
end
local function grant()
  return acquire(micros, ARGV[2], ARGV[3], ARGV[10], ARGV[9])
end
