-- A plain lock: the part of its script behind token_key.lua. mutex.lua and queue.lua are the parts behind it.
-- KEYS[1]  the lock's key
-- ARGV[1]  the verb: release, take or leave; queue.lua has what follows, and what each returns
local asked, holder = 'm', owner
local function fits(_, rank)
  return not owner and rank == 0
end
local function has_key()
  return 1
end
local function grant()
  local set = redis.pcall('SET', key, ARGV[2], 'NX', 'PX', ARGV[3])
  return type(set) == 'table' and set.err and set or 1
end
local function held_for()
  if not owner then
    return 0
  end
  local left = redis.pcall('PTTL', key)
  -- A key lives through the last millisecond of its time. What a user may not know counts as later than any other
  -- reason to ask.
  return type(left) ~= 'number' and 60000 or left < 0 and left or left + 1
end
