-- What a node remembers of itself: stores a note, if the node has the value that was read, and was looked at a moment
-- ago. The key is written by one command or not at all. Errors are returned, not raised.
-- KEYS[1]  the node's key
-- ARGV[1]  the value that was read; an empty string: there was none
-- ARGV[2]  the node's clock at that look, in microseconds
-- ARGV[3]  the note up to its time
-- ARGV[4]  its time; an empty string: the present one
-- ARGV[5]  the note from its time on
-- returns  the value that is there now, or nothing
local found = redis.pcall('GET', KEYS[1])
if type(found) == 'table' then
  return found
end
local time = redis.pcall('TIME')
if time.err then
  return time
end
local now, looked = time[1] * 1000000 + time[2], tonumber(ARGV[2])
if (found or '') ~= ARGV[1] or now < looked or now - looked > 1000000 then
  return found
end
local note = ARGV[3] .. (ARGV[4] ~= '' and ARGV[4] or string.format('%.0f', now)) .. ARGV[5]
local stored = redis.pcall('SET', KEYS[1], note)
return stored.err and stored or note
