import Exploring

let scenarios: [Scenario] = settling + adopting + combining + loops + observing
