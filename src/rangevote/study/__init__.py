"""Human evaluation: pairs of outputs judged by people, as in section 4.1.4 of the paper."""
