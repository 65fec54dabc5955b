// Shows the contract. Nothing is stored, and nothing is sent anywhere but to this service.
window.SwaggerUIBundle({
  url: "/api/v1/schema/",
  dom_id: "#pages",
  presets: [window.SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  docExpansion: "none",
  validatorUrl: null,
  persistAuthorization: false,
});
