-- The script of fenced locks as it was before values could have a label.
local most = 9007199254740991
local minute, day = 60000000, 86400000000
local value = redis.pcall('GET', KEYS[1])
if type(value) == 'table' then
  if string.sub(value.err, 1, 9) == 'WRONGTYPE' then
    return -2
  end
  return value
end
local fence, deadline, owner = 0, 0, ''
if value then
  fence, deadline, owner = string.match(value, '^([1-9]%d*) (%d+) ([0-9a-f]*)$')
  fence, deadline = tonumber(fence or ''), tonumber(deadline or '')
  if not fence or fence > most or deadline > most or (owner ~= '' and #owner ~= 40)
    or string.format('%.0f %.0f %s', fence, deadline, owner) ~= value then
    return -2
  end
end
local what, ours = ARGV[1], owner == ARGV[2]
local answer = 1
local clock, greatest
if what ~= 'release' then
  local time = redis.pcall('TIME')
  if time.err then
    return time
  end
  clock = time[1] * 1000000 + time[2]
  greatest = math.min(clock + minute + day, most)
end
if what == 'acquire' or what == 'extend' then
  local now = math.floor(clock / 1000)
  local is_held = owner ~= '' and deadline >= now
  if is_held and not ours then
    return what == 'acquire' and now - deadline - 4 or -1
  end
  if what == 'extend' and not is_held then
    return 0
  end
  if what == 'acquire' then
    if is_held then
      return string.format('%.0f', fence)
    end
    fence = math.max(fence + 1, math.min(tonumber(ARGV[5]), clock + minute))
    if fence > greatest then
      return -3
    end
    answer = string.format('%.0f', fence)
  end
  deadline, owner = now + ARGV[4], ARGV[2]
elseif not ours then
  return owner == '' and 0 or -1
elseif what == 'raise' then
  fence = math.max(fence, tonumber(ARGV[4]))
  if fence > greatest then
    return -3
  end
else
  deadline, owner = 0, ''
end
local function store()
  return redis.pcall('SET', KEYS[1], string.format('%.0f %.0f %s', fence, deadline, owner), 'PX', ARGV[3])
end
local stored = store()
if stored.err and what == 'release' and redis.pcall('PEXPIRE', KEYS[1], ARGV[3]) == 1 then
  stored = store()
end
if stored.err then
  return stored
end
if what ~= 'release' or not ARGV[4] then
  return answer
end
local heard = redis.pcall('PUBLISH', ARGV[4] .. KEYS[1], ARGV[5])
if type(heard) == 'table' then
  return 2
end
return heard > 0 and 2 + heard or answer
