-- A fair lock: the lock's key is that of a plain lock, and a queue stands beside it. The queue is one string: the
-- greatest ticket that was seen here, and the places of those that wait, in the order of (ticket, id), each with a space
-- in front: "ticket:deadline:id". Tickets have 15 digits, deadlines 13 (milliseconds of this server's clock, the last
-- one included), ids 16, so that places are as long and in the same order as their texts. A place whose deadline has
-- passed does not count. The key ends when its last place does. Places in the middle that have ended are taken out with
-- every 32nd newcomer, and whenever a place changes its ticket: to go through all of them for each newcomer takes time.
-- Each call writes at most one of the two keys, by one command: a restart cannot lose half of it.
-- Errors are returned, not raised: servers before Redis 7 would wrap what they raise.
-- KEYS[1]  the lock's key
-- KEYS[2]  the queue's key
-- ARGV[1]  what to do: take, leave or release
-- take:    sets the lock's key if it is free and the caller is first: if no other one waits, or if exactly its ticket is
--          stored here and the least one. Otherwise notes its place.
--   ARGV[2]  the owner token; a space and the label of the holder, if it has one
--   ARGV[3]  how long the lock is to be held from now on, in milliseconds
--   ARGV[4]  the caller's id
--   ARGV[5]  its ticket; 0: the one that is stored here, or the next one
--   ARGV[6]  how long its place counts from now on, in milliseconds; 0: no place is noted
--   returns  1: the key is set, or was with this token; -2: what stands under the queue's key cannot be read; otherwise
--            a string of five fields: how long the lock is held from now on at most, in milliseconds, 0 when it is free,
--            -1 without an end; the ticket; the position, counted from 1; for how long the first place counts if it is
--            another one's, or 0; and the id of the first
-- leave:   deletes the caller's place. If it was first and the lock is free, a hint for the next one is published.
--   ARGV[2]  the caller's id
--   ARGV[3]  what the name of the channel begins with, the lock's key being the rest, or nothing: no hint
--   ARGV[4]  the hint
--   returns  1, or 0 when there was no place
-- release: deletes the lock's key if it holds our token, and publishes a hint, with "@" and the id of the first.
--   ARGV[2]  the owner token
--   ARGV[3]  as with leave
--   ARGV[4]  the hint
--   returns  0 when the key was not ours; when it was and is gone now, 1, or 2 when publishing is denied, or 2 and the
--            number of subscribers
local what, id = ARGV[1], ARGV[2]
local owner = redis.pcall('GET', KEYS[1])
if type(owner) == 'table' then
  if string.sub(owner.err, 1, 9) ~= 'WRONGTYPE' then
    return owner
  end
  owner = ''
end
if what == 'take' and owner == ARGV[2] then
  return 1
elseif what == 'release' then
  if owner ~= ARGV[2] then
    return 0
  end
  local gone = redis.pcall('DEL', KEYS[1])
  if gone ~= 1 or not ARGV[3] then
    return gone
  end
end
local queue = redis.pcall('GET', KEYS[2])
if type(queue) == 'table' and string.sub(queue.err, 1, 9) ~= 'WRONGTYPE' and what ~= 'release' then
  return queue
end
local length, head = 47, 15
queue = queue or string.rep('0', head)
local seen = type(queue) == 'string' and (#queue - head) % length == 0 and tonumber(string.sub(queue, 1, head))
if not seen then
  if what ~= 'release' then
    return -2
  end
  queue = string.rep('0', head)
end
local count = (#queue - head) / length
local function part(place, from, to)
  local before = head + (place - 1) * length
  return string.sub(queue, before + from, before + to)
end
local time = redis.pcall('TIME')
if time.err then
  return what == 'release' and 1 or time
end
local clock = time[1] * 1000 + math.floor(time[2] / 1000)
local now = string.format('%013.0f', clock)
local function next_place(place)
  while place <= count and part(place, 18, 30) < now do
    place = place + 1
  end
  return place
end
local first = next_place(1)
local function publish(place)
  local hint = place <= count and ARGV[4] .. '@' .. part(place, 32, 47) or ARGV[4]
  return redis.pcall('PUBLISH', ARGV[3] .. KEYS[1], hint)
end
if what == 'release' then
  local heard = publish(first)
  if type(heard) == 'table' then
    return 2
  end
  return heard > 0 and 2 + heard or 1
end
if what == 'take' then
  id = ARGV[4]
end
local own = string.find(queue, ':' .. id, head + 1, true)
own = own and (own - head - 31) / length + 1
if what == 'leave' then
  if not own then
    return 0
  end
  local rest = string.sub(queue, 1, head + (own - 1) * length) .. string.sub(queue, head + own * length + 1)
  local left = redis.pcall('PTTL', KEYS[2])
  local written
  if #rest == head or type(left) == 'table' or left < 1 then
    written = redis.pcall('DEL', KEYS[2])
  else
    written = redis.pcall('SET', KEYS[2], rest, 'PX', left)
  end
  if type(written) == 'table' and written.err then
    return written
  end
  if own == first and not owner and ARGV[3] then
    local next = next_place(own + 1)
    if next <= count then
      publish(next)
    end
  end
  return 1
end
local stored = own and own >= first and part(own, 18, 30) >= now and part(own, 2, 16)
local mine = stored or string.format('%015.0f', seen + 1)
if ARGV[5] ~= '0' then
  mine = string.format('%015.0f', ARGV[5])
end
local is_first = first > count or first == own and (stored == mine or next_place(own + 1) > count)
if not owner and is_first then
  local set = redis.pcall('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3])
  return set and set.err and set or 1
end
local held = 0
if owner then
  held = redis.pcall('PTTL', KEYS[1])
  if type(held) == 'table' then
    return held
  end
  held = held < 0 and -1 or held + 1
end
local position = own and own - first + 1 or count - first + 2
local keeps = tonumber(ARGV[6])
if keeps > 0 then
  local deadline = string.format('%013.0f', clock + keeps)
  local head_now = string.format('%015.0f', math.max(seen, tonumber(mine)))
  if stored == mine then
    local before = head + (own - 1) * length
    queue = head_now .. string.sub(queue, head + (first - 1) * length + 1, before + 17) .. deadline
      .. string.sub(queue, before + 31)
  elseif not own and count % 32 > 0 and part(count, 2, 16) < mine then
    queue = head_now .. string.sub(queue, head + (first - 1) * length + 1) .. ' ' .. mine .. ':' .. deadline .. ':' .. id
  else
    local places, place = { head_now }, ' ' .. mine .. ':' .. deadline .. ':' .. id
    position = nil
    for other = first, count do
      if other ~= own and part(other, 18, 30) >= now then
        if not position and part(other, 2, 16) .. part(other, 32, 47) > mine .. id then
          position = #places
          places[#places + 1] = place
        end
        places[#places + 1] = part(other, 1, length)
      end
    end
    if not position then
      position = #places
      places[#places + 1] = place
    end
    queue = table.concat(places)
  end
  first, count = 1, (#queue - head) / length
  local left = redis.pcall('PTTL', KEYS[2])
  if type(left) == 'table' then
    return left
  end
  local set = redis.pcall('SET', KEYS[2], queue, 'PX', math.max(keeps, left))
  if set.err then
    return set
  end
end
local next_id, lasts = id, 0
if first <= count then
  next_id = part(first, 32, 47)
  if next_id ~= id then
    lasts = tonumber(part(first, 18, 30)) - clock + 1
  end
end
return string.format('%.0f %s %.0f %.0f %s', held, mine, position, lasts, next_id)
