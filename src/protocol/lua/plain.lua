-- A plain lock: the part of its script that is about the lock's key. queue.lua is the part behind it.
-- The key is written by one command or not at all: a restart cannot lose half of it.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- ARGV[1]  the verb: release, take or leave; queue.lua has what follows, and what each returns
local key = KEYS[1]
local queue = 'quorumlock-queue:' .. key
local owner = redis.pcall('GET', key)
if type(owner) == 'table' then
  if string.sub(owner.err, 1, 9) ~= 'WRONGTYPE' then
    return owner
  end
  owner = ''
end
local ours = owner == ARGV[2]
if ARGV[1] == 'release' then
  if ours then
    local gone = redis.pcall('DEL', key)
    if type(gone) == 'table' then
      return gone
    end
    owner = false
  end
  -- No call waits, or the lock is held by another: most releases end here, before any function is defined.
  if not ARGV[3] and (owner or redis.pcall('EXISTS', queue) == 0) then
    return ours and 1 or 0
  end
end
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
