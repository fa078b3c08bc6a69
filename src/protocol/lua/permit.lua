-- A permit of a semaphore: the part of its script behind token_key.lua. queue.lua is the part behind it.
-- An entry of another program may count with another number of permits: "s" and that number are its kind.
-- KEYS[1]  the key of a slot
-- ARGV     as of queue.lua; take: [8] the number of permits
-- returns  what queue.lua returns; a take that is granted: 1
local permits, most = tonumber(ARGV[1] == 'take' and ARGV[8] or 0), 256
local asked, holder, keeps_entry, free = 's' .. permits, owner, false, {}
local function kind_of(member)
  -- What no client has written is told, and so found dead.
  return string.match(member, '^%x+(s[1-9]%d*):') or 's' .. most
end
local function slot_keys(count)
  local keys = {}
  for slot = 1, math.min(count, most) do
    keys[slot] = name .. '#' .. (slot - 1)
  end
  return keys
end
local function free_of(keys)
  local taken = redis.pcall('EXISTS', unpack(keys))
  if type(taken) == 'number' then
    return #keys - taken
  end
  -- A cluster refuses one command with keys in different slots, also where one server has all of them.
  local count = 0
  for _, slot_key in ipairs(keys) do
    count = count + (redis.pcall('EXISTS', slot_key) == 0 and 1 or 0)
  end
  return count
end
local function fits(kind, rank)
  local count = tonumber(string.sub(kind, 2))
  if not free[count] and count > 0 then
    free[count] = free_of(slot_keys(count))
  end
  return rank < (free[count] or 0)
end
local function blocker()
  return nil
end
local function was_told(kind, rank)
  return ARGV[1] ~= 'take' and rank < free[tonumber(string.sub(kind, 2))] - 1
end
local function has_key()
  return 1
end
local function grant()
  if owner then
    return nil
  end
  local set = redis.pcall('SET', key, ARGV[2], 'NX', 'PX', ARGV[3])
  if type(set) == 'table' and set.err then
    return set
  end
  local left = free[permits]
  free = {[permits] = left and left - 1}
  return 1
end
-- There is one slot less, and one entry less in front of those behind: they would have been granted before as well.
local function grant_tells()
  return (free[permits] or 0) >= 64
end
local least, letters
local function slots()
  if not letters then
    local each = {}
    least = -1
    for slot, slot_key in ipairs(slot_keys(permits)) do
      local left = redis.pcall('PTTL', slot_key)
      left = type(left) == 'number' and left or 60000
      each[slot] = left == -2 and 'f' or left == -1 and 'e' or 't'
      -- A key lives through the last millisecond of its time.
      if left >= 0 and (least < 0 or left < least) then
        least = left + 1
      end
    end
    letters = table.concat(each)
  end
  return letters
end
local function held_for()
  return string.find(slots(), 'f', 1, true) and 0 or least
end
