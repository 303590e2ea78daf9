"""From alerts to a plan: select, group, target, climb, cover. Pure; what is needed from outside is asked for in steps."""
