-- What locks with one holder have in common: the part between a kind's own and queue.lua.
-- KEYS, ARGV  as of the part before it
-- returns     what queue.lua returns
local function kind_of()
  return asked
end
local function blocker()
  return nil
end
local function was_told()
  return false
end
local function slots()
  return '-'
end
local keeps_entry = true
