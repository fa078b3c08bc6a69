-- The queue of a fair lock: the part of a script that is the same for locks of all kinds. The queue is one string: the
-- greatest ticket that was seen here, and the places of those that wait, in the order of (ticket, id), each with a
-- space in front: "ticket:deadline:id". Tickets have 15 digits, deadlines 13 (milliseconds of this server's clock, the
-- last one included), ids 16, so that places are as long and in the same order as their texts. A place whose deadline
-- has passed does not count. The key ends when its last place does. Places in the middle that have ended are taken out
-- with every 32nd newcomer, and whenever a place changes its ticket: to go through all of them for each newcomer takes
-- time. Tickets do not grow beyond their digits, where only damage brings them: calls then have the same one, and the
-- order of their ids, until the queue ends.
-- The part before this one has released the lock, if that is what it is to do, and says of the lock:
--   what        what to do: take, leave or release
--   is_free     whether it is free
--   time        what TIME has replied
--   undoes      release: the id of a caller that has not won the lock; nothing: it was held
--   channel     what the name of the channel begins with; nothing or an empty string: no hint
--   hint        the hint
--   held_for()  for how long it is held, in milliseconds, -1 without an end; or an error
--   grant()     gives it to the caller; what the script is to return
-- KEYS, ARGV  as of the part before this one
-- returns  take: what grant() does, or a string of five fields; leave: 1 or 0; release: 1 or more
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
local function ticket(number)
  return string.format('%015.0f', math.min(number, 999999999999999))
end
local function part(place, from, to)
  local before = head + (place - 1) * length
  return string.sub(queue, before + from, before + to)
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
local publishes = (channel or '') ~= ''
local function publish(place)
  local message = place <= count and hint .. '@' .. part(place, 32, 47) or hint
  return redis.pcall('PUBLISH', channel .. KEYS[1], message)
end
if what == 'release' then
  if undoes and (first > count or part(first, 32, 47) == undoes) then
    return 1
  end
  local heard = publish(first)
  if type(heard) == 'table' then
    return 2
  end
  return heard > 0 and 2 + heard or 1
end
local id = what == 'take' and ARGV[4] or ARGV[2]
local own = string.find(queue, ':' .. id, head + 1, true)
own = own and (own - head - 31) / length + 1
if what == 'leave' then
  local successor, rest = ARGV[5], queue
  if own then
    rest = string.sub(queue, 1, head + (own - 1) * length) .. string.sub(queue, head + own * length + 1)
  elseif not successor then
    return 0
  end
  local left = redis.pcall('PTTL', KEYS[2])
  left = type(left) == 'table' and 0 or left
  if successor then
    local next, lasts = ticket(seen + 1), tonumber(ARGV[6])
    rest = next .. string.sub(rest, head + 1) .. ' ' .. next .. ':' .. string.format('%013.0f', clock + lasts) .. ':'
      .. successor
    left = math.max(left, lasts)
  end
  local written
  if #rest == head or left < 1 then
    written = redis.pcall('DEL', KEYS[2])
  else
    written = redis.pcall('SET', KEYS[2], rest, 'PX', left)
  end
  if type(written) == 'table' and written.err then
    return written
  end
  if own == first and publishes then
    local next = next_place(own + 1)
    if next <= count then
      publish(next)
    end
  end
  return 1
end
local stored = own and own >= first and part(own, 18, 30) >= now and part(own, 2, 16)
local mine = stored or ticket(seen + 1)
if ARGV[5] ~= '0' then
  mine = ticket(tonumber(ARGV[5]))
end
local keeps = tonumber(ARGV[6])
local is_first
if ARGV[5] ~= '0' and keeps > 0 then
  is_first = first == own and stored == mine
else
  is_first = first > count or first == own and (stored == mine or next_place(own + 1) > count)
end
if is_free and is_first then
  return grant()
end
local held = is_free and 0 or held_for()
if type(held) == 'table' then
  return held
end
local position = own and own >= first and own - first + 1 or count - first + 2
if keeps > 0 then
  local deadline = string.format('%013.0f', clock + keeps)
  local head_now = ticket(math.max(seen, tonumber(mine)))
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
    if is_free and publishes then
      publish(first)
    end
  end
end
return string.format('%.0f %s %.0f %.0f %s', held, mine, position, lasts, next_id)
