// How a caregiver is related to the patient: the codes of the API.
export const relationships = ["spouse", "partner", "parent", "child", "sibling", "grandparent", "grandchild", "relative", "friend",
  "neighbor", "guardian", "power_of_attorney", "other"];
