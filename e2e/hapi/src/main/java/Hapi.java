import ca.uhn.fhir.batch2.jobs.config.Batch2JobsConfig;
import ca.uhn.fhir.context.FhirContext;
import ca.uhn.fhir.context.support.IValidationSupport;
import ca.uhn.fhir.jpa.api.config.JpaStorageSettings;
import ca.uhn.fhir.jpa.api.config.ThreadPoolFactoryConfig;
import ca.uhn.fhir.jpa.api.dao.IFhirSystemDao;
import ca.uhn.fhir.jpa.batch2.JpaBatch2Config;
import ca.uhn.fhir.jpa.config.HapiJpaConfig;
import ca.uhn.fhir.jpa.config.r4.JpaR4Config;
import ca.uhn.fhir.jpa.config.util.HapiEntityManagerFactoryUtil;
import ca.uhn.fhir.jpa.model.config.PartitionSettings;
import ca.uhn.fhir.jpa.model.config.SubscriptionSettings;
import ca.uhn.fhir.jpa.model.dialect.HapiFhirH2Dialect;
import ca.uhn.fhir.jpa.provider.IJpaSystemProvider;
import ca.uhn.fhir.jpa.provider.JpaCapabilityStatementProvider;
import ca.uhn.fhir.jpa.search.DatabaseBackedPagingProvider;
import ca.uhn.fhir.jpa.subscription.channel.config.SubscriptionChannelConfig;
import ca.uhn.fhir.jpa.subscription.submit.config.SubscriptionSubmitterConfig;
import ca.uhn.fhir.rest.server.HardcodedServerAddressStrategy;
import ca.uhn.fhir.rest.server.RestfulServer;
import ca.uhn.fhir.rest.server.interceptor.RequestValidatingInterceptor;
import ca.uhn.fhir.rest.server.provider.ResourceProviderFactory;
import ca.uhn.fhir.rest.server.util.ISearchParamRegistry;
import ca.uhn.fhir.validation.IInstanceValidatorModule;
import ca.uhn.fhir.validation.ResultSeverityEnum;
import jakarta.persistence.EntityManagerFactory;
import java.io.IOException;
import java.util.List;
import java.util.Properties;
import javax.sql.DataSource;
import org.apache.commons.dbcp2.BasicDataSource;
import org.eclipse.jetty.ee10.servlet.ServletContextHandler;
import org.eclipse.jetty.ee10.servlet.ServletHolder;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.hl7.fhir.common.hapi.validation.validator.FhirInstanceValidator;
import org.hl7.fhir.r4.model.Observation;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.orm.jpa.JpaTransactionManager;
import org.springframework.orm.jpa.LocalContainerEntityManagerFactoryBean;

/**
 * A HAPI FHIR R4 server with a database in a file. By default it has the settings of HAPI and H2: versions are kept, references are checked, and
 * searches are cached for a minute. In strict mode it writes every commit to the file at once, and rejects invalid resources. Arguments: address
 * to listen on, base address, database file, "strict" or nothing.
 */
public class Hapi {
  public static void main(String[] args) throws Exception {
    endWithWhoStarted();
    String[] listen = args[0].split(":");
    boolean strict = args.length > 3 && args[3].equals("strict");
    System.setProperty("hapi.database", "jdbc:h2:file:" + args[2] + (strict ? ";WRITE_DELAY=0" : ""));
    var context = new AnnotationConfigApplicationContext(Practice.class);
    var fhir = server(context, args[1]);
    if (strict) {
      refuseInvalid(context, fhir);
    }
    var jetty = new Server(new QueuedThreadPool(24));
    var connector = new ServerConnector(jetty);
    connector.setHost(listen[0]);
    connector.setPort(Integer.parseInt(listen[1]));
    jetty.addConnector(connector);
    var root = new ServletContextHandler("/");
    root.addServlet(new ServletHolder(fhir), "/fhir/*");
    jetty.setHandler(root);
    jetty.start();
    jetty.join();
  }

  /** Ends the server when its standard input ends, which happens when the parent process ends in any way. */
  static void endWithWhoStarted() {
    var watch =
        new Thread(
            () -> {
              try {
                while (System.in.read() >= 0) {}
              } catch (IOException e) {
                // the same as end of file
              }
              Runtime.getRuntime().halt(1);
            });
    watch.setDaemon(true);
    watch.start();
  }

  static RestfulServer server(AnnotationConfigApplicationContext context, String base) {
    IFhirSystemDao<?, ?> dao = context.getBean(IFhirSystemDao.class);
    var server = new RestfulServer(dao.getContext());
    server.registerProviders(context.getBean(ResourceProviderFactory.class).createProviders());
    server.registerProvider(context.getBean(IJpaSystemProvider.class));
    server.setServerConformanceProvider(
        new JpaCapabilityStatementProvider(
            server,
            dao,
            context.getBean(JpaStorageSettings.class),
            context.getBean(ISearchParamRegistry.class),
            context.getBean(IValidationSupport.class)));
    var pages = context.getBean(DatabaseBackedPagingProvider.class);
    pages.setMaximumPageSize(500);
    server.setPagingProvider(pages);
    server.setServerAddressStrategy(new HardcodedServerAddressStrategy(base));
    return server;
  }

  static void refuseInvalid(AnnotationConfigApplicationContext context, RestfulServer server) {
    var validator = context.getBean(IInstanceValidatorModule.class);
    ((FhirInstanceValidator) validator).setErrorForUnknownProfiles(false); // US Core is not on Maven Central
    server.getFhirContext().newValidator().registerValidatorModule(validator).validateWithResult(new Observation()); // loads R4 once
    var refusing = new RequestValidatingInterceptor();
    refusing.setFailOnSeverity(ResultSeverityEnum.ERROR);
    refusing.setValidatorModules(List.of(validator));
    server.registerInterceptor(refusing);
  }

  /** The configuration that HAPI requires from its operator. */
  @Configuration
  @Import({
    JpaR4Config.class,
    HapiJpaConfig.class,
    ThreadPoolFactoryConfig.class,
    JpaBatch2Config.class,
    Batch2JobsConfig.class,
    SubscriptionSubmitterConfig.class,
    SubscriptionChannelConfig.class
  })
  public static class Practice {
    @Bean
    public DataSource dataSource() {
      var source = new BasicDataSource();
      source.setUrl(System.getProperty("hapi.database"));
      source.setMaxTotal(20);
      return source;
    }

    @Bean
    public JpaStorageSettings jpaStorageSettings() {
      var settings = new JpaStorageSettings();
      settings.setAllowExternalReferences(false);
      settings.setEnforceReferentialIntegrityOnWrite(true);
      settings.setEnforceReferentialIntegrityOnDelete(false); // a patient can be deleted although readings refer to the patient
      settings.setReuseCachedSearchResultsForMillis(60_000L);
      return settings;
    }

    @Bean
    public PartitionSettings partitionSettings() {
      return new PartitionSettings();
    }

    @Bean
    public SubscriptionSettings subscriptionSettings() {
      return new SubscriptionSettings();
    }

    @Bean
    public LocalContainerEntityManagerFactoryBean entityManagerFactory(
        DataSource source, ConfigurableListableBeanFactory beans, FhirContext fhir, JpaStorageSettings settings) {
      var factory = HapiEntityManagerFactoryUtil.newEntityManagerFactory(beans, fhir, settings);
      factory.setPersistenceUnitName("HAPI");
      factory.setDataSource(source);
      var properties = new Properties();
      properties.put("hibernate.dialect", HapiFhirH2Dialect.class.getName());
      properties.put("hibernate.hbm2ddl.auto", "update");
      properties.put("hibernate.search.enabled", "false");
      factory.setJpaProperties(properties);
      return factory;
    }

    @Bean
    public JpaTransactionManager transactionManager(EntityManagerFactory factory) {
      return new JpaTransactionManager(factory);
    }
  }
}
