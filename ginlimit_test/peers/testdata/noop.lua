-- noop.lua: what a script costs that decides nothing.
return {1, 1, 0}
