// The kernels that every policy spends its time in, by dimension.
#include <benchmark/benchmark.h>

#include <vector>

#include "codband/base/random.h"
#include "codband/linalg/gaussian_posterior.h"
#include "codband/linalg/joint_likelihood.h"
#include "codband/linalg/kernels.h"

namespace codband {
namespace {

std::vector<double> Vectors(std::size_t count, std::size_t dim) {
  RandomStream random({1, count}, dim);
  std::vector<double> values(count * dim);
  random.FillNormal(values);
  return values;
}

linalg::GaussianPosterior Learned(std::size_t dim, std::uint64_t seed) {
  linalg::GaussianPosterior posterior(dim, 1, 0.01);
  const std::vector<double> data = Vectors(200 + seed, dim);
  for (std::size_t i = 0; i < 200; ++i) {
    posterior.Add(std::span(data).subspan(i * dim, dim), 0.5);
  }
  return posterior;
}

void Dot(benchmark::State& state) {
  const auto dim = static_cast<std::size_t>(state.range(0));
  const std::vector<double> a = Vectors(1, dim);
  const std::vector<double> b = Vectors(2, dim);
  for (auto _ : state) benchmark::DoNotOptimize(codband::linalg::Dot(a, std::span(b).first(dim)));
}

void PosteriorAdd(benchmark::State& state) {
  const auto dim = static_cast<std::size_t>(state.range(0));
  linalg::GaussianPosterior posterior = Learned(dim, 0);
  const std::vector<double> x = Vectors(1, dim);
  for (auto _ : state) posterior.Add(x, 0.5);
}

void PosteriorAddAndRemove(benchmark::State& state) {
  const auto dim = static_cast<std::size_t>(state.range(0));
  linalg::GaussianPosterior posterior = Learned(dim, 0);
  const std::vector<double> x = Vectors(1, dim);
  for (auto _ : state) {
    posterior.Add(x, 0.5);
    posterior.Remove(x, 0.5);
  }
}

void PosteriorSample(benchmark::State& state) {
  const auto dim = static_cast<std::size_t>(state.range(0));
  const linalg::GaussianPosterior posterior = Learned(dim, 0);
  std::vector<double> theta(dim);
  std::uint64_t event = 0;
  for (auto _ : state) {
    RandomStream random({1, event++}, 2);
    posterior.Sample(random, 1, theta);
    benchmark::DoNotOptimize(theta.data());
  }
}

void VariancesOfTenArms(benchmark::State& state) {
  const auto dim = static_cast<std::size_t>(state.range(0));
  const linalg::GaussianPosterior posterior = Learned(dim, 0);
  const std::vector<double> arms = Vectors(10, dim);
  std::vector<double> variances(10);
  for (auto _ : state) {
    posterior.Variances(arms, variances);
    benchmark::DoNotOptimize(variances.data());
  }
}

// ln p(D | k) for ten models and the prior.
void JointLikelihoodOfTenModels(benchmark::State& state) {
  const auto dim = static_cast<std::size_t>(state.range(0));
  std::vector<linalg::GaussianPosterior> posteriors;
  for (std::uint64_t k = 0; k < 11; ++k) posteriors.push_back(Learned(dim, k));
  std::vector<linalg::JointLikelihood::Model> models;
  for (const linalg::GaussianPosterior& posterior : posteriors)
    models.push_back({&posterior, false});
  linalg::JointLikelihood joint(dim);
  std::vector<double> densities(models.size());
  for (auto _ : state) {
    joint.LogDensities(posteriors[0].stats(), models, densities);
    benchmark::DoNotOptimize(densities.data());
  }
}

BENCHMARK(Dot)->Arg(5)->Arg(25)->Arg(64);
BENCHMARK(PosteriorAdd)->Arg(5)->Arg(25)->Arg(64);
BENCHMARK(PosteriorAddAndRemove)->Arg(5)->Arg(25)->Arg(64);
BENCHMARK(PosteriorSample)->Arg(5)->Arg(25)->Arg(64);
BENCHMARK(VariancesOfTenArms)->Arg(5)->Arg(25)->Arg(64);
BENCHMARK(JointLikelihoodOfTenModels)->Arg(5)->Arg(25)->Arg(64);

}  // namespace
}  // namespace codband

BENCHMARK_MAIN();
